import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Config, StopTimes } from 'sluicegate-config/config.js'
import type { WebhookConfig } from 'sluicegate-config/webhook.js'
import type { SoftLimitReached } from './engine/engine.js'
import type { Log } from './log.js'
import type { Part, Prepared } from './part.js'

/** Announcements that are sent or tried again now; others wait. */
const MOST_SENT = 8
/** What finds no room is counted and dropped. */
const MOST_WAITING = 1_000
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000
/** Statuses after which another attempt may pass, beside 5xx. */
const MAY_PASS: ReadonlySet<number> = new Set([408, 425, 429])

/** Announcements by what became of them, and attempts that failed. */
export type WebhookCounts = Record<'delivered' | 'failed' | 'dropped' | 'attemptsFailed', number>

interface Message {
  readonly id: string
  readonly body: string
}

/**
 * Announces soft limits to a receiver over HTTP, as Standard Webhooks describes it. Nothing waits for it: an announcement stands in a bounded queue, is
 * tried a bounded number of times, and has the same `webhook-id` in each attempt, by which a receiver knows one whose answer was lost.
 */
export class Webhook implements Part {
  readonly name = 'webhook'
  readonly counts: WebhookCounts = { delivered: 0, failed: 0, dropped: 0, attemptsFailed: 0 }
  #config: WebhookConfig | undefined
  readonly #log: Log
  readonly #firstRetryMs: number
  readonly #waiting: Message[] = []
  readonly #sent = new Set<Promise<void>>()
  /** Ends pauses: another receiver is tried at once. */
  #changing = new AbortController()
  /** The service stops: no attempt follows one that fails. */
  readonly #stopping = new AbortController()
  /** Its time is over. */
  readonly #stopped = new AbortController()

  /** @param config undefined: nobody is told. */
  constructor(config: WebhookConfig | undefined, log: Log, firstRetryMs: number = FIRST_RETRY_MS) {
    this.#config = config
    this.#log = log
    this.#firstRetryMs = firstRetryMs
  }

  /** Announcements that wait or are tried. */
  get size(): number {
    return this.#waiting.length + this.#sent.size
  }

  /** Attempts under way end as they began; those that follow, and what waits, go to the new receiver. */
  reload({ webhook }: Pick<Config, 'webhook'>): Prepared {
    return {
      commit: () => {
        if (isDeepStrictEqual(webhook, this.#config)) return
        this.#config = webhook
        this.#changing.abort()
        this.#changing = new AbortController()
      },
    }
  }

  announce({ policy, part, key, threshold, used, limit }: SoftLimitReached): void {
    if (this.#config === undefined) return
    if (this.#waiting.length >= MOST_WAITING || this.#stopping.signal.aborted) {
      this.counts.dropped++
      return
    }
    const data = { policy, ...(part !== undefined && { part }), key, threshold, used, limit }
    const body = JSON.stringify({ type: 'soft-limit.reached', timestamp: new Date().toISOString(), data })
    this.#waiting.push({ id: randomUUID(), body })
    this.#next()
  }

  async stop({ finishMs }: StopTimes): Promise<void> {
    this.#stopping.abort()
    const timer = setTimeout(() => {
      this.counts.dropped += this.#waiting.splice(0).length
      this.#stopped.abort()
    }, finishMs)
    while (this.#sent.size > 0) await Promise.all(this.#sent)
    clearTimeout(timer)
  }

  #next(): void {
    while (this.#sent.size < MOST_SENT) {
      const message = this.#waiting.shift()
      if (message === undefined) return
      const sending: Promise<void> = this.#delivered(message).then(() => {
        this.#sent.delete(sending)
        this.#next()
      })
      this.#sent.add(sending)
    }
  }

  async #delivered(message: Message): Promise<void> {
    let before = this.#config
    for (let attempts = 1; ; attempts++) {
      const config = this.#config
      if (config === undefined) {
        this.counts.dropped++
        return
      }
      if (config !== before) attempts = 1
      before = config
      const fault = await this.#attempt(message, config)
      if (fault === undefined) {
        this.counts.delivered++
        return
      }
      this.counts.attemptsFailed++
      const isChanged = config !== this.#config
      if (this.#stopping.signal.aborted || !(isChanged || (fault.mayPass && attempts <= config.retries))) {
        this.counts.failed++
        this.#log.warn({ fault: fault.reason, attempts }, 'a soft limit could not be announced to the webhook')
        return
      }
      if (!isChanged) await this.#pause(attempts - 1)
    }
  }

  async #attempt(
    { id, body }: Message,
    { url, secret, timeoutMs }: WebhookConfig,
  ): Promise<{ readonly reason: string; readonly mayPass: boolean } | undefined> {
    const timestamp = String(Math.floor(Date.now() / 1_000))
    try {
      const response = await fetch(url, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          ...(secret !== undefined && { 'webhook-signature': signatureOf(secret, `${id}.${timestamp}.${body}`) }),
        },
        // The configuration names the receiver, not the receiver another one.
        redirect: 'manual',
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#stopped.signal]),
      })
      await response.body?.cancel()
      const { status } = response
      return response.ok ? undefined : { reason: `status ${status}`, mayPass: status >= 500 || MAY_PASS.has(status) }
    } catch (error) {
      const { name, cause } = error as Error & { readonly cause?: { readonly code?: string } }
      return { reason: cause?.code ?? name, mayPass: true }
    }
  }

  /** Twice as long after each attempt, and up to a quarter less, so that many processes do not try at once. */
  #pause(attempt: number): Promise<void> {
    const ms = Math.min(MAX_RETRY_MS, this.#firstRetryMs * 2 ** attempt) * (1 - Math.random() / 4)
    const signal = AbortSignal.any([this.#stopping.signal, this.#changing.signal])
    return wait(ms, undefined, { signal, ref: false }).catch(() => undefined)
  }
}

/** That of Standard Webhooks: HMAC-SHA256, with a key in base64 after `whsec_`, or else the text itself. */
function signatureOf(secret: string, text: string): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}

/** What a service does with soft limits that were reached: a line of the log, without the key, and the webhook. */
export function announcing(log: Log, webhook: Webhook): (reached: SoftLimitReached) => void {
  return (reached) => {
    const { key: _, ...shown } = reached
    log.debug(shown, 'a key has reached a soft limit')
    webhook.announce(reached)
  }
}
