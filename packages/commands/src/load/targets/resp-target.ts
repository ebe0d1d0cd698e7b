import { UsageError } from '../../terminal/usage-error.js'
import type { TargetPlan } from '../load-plan.js'
import { ErrorTexts, type LoadOutcome, type LoadTarget } from '../load-plan.js'
import { RequestPool } from './request-pool.js'
import { type AnswerReader, type SocketCodec, SocketConnection } from './socket-connection.js'

/** Requests that wait on one connection; the protocol answers in order. */
const PIPELINED = 64
const THROTTLE = /^(\d{1,15}) (\d{1,15}) (\d{1,15})$/

/** `SG.TAKE` of a policy, or `CL.THROTTLE` with a rate of its own, in the protocol of Redis. */
export function respTarget({ url, policy, cost, token, connections, throttle }: TargetPlan): LoadTarget {
  const { hostname, port, protocol } = new URL(url)
  const address = { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || 6379, isTls: protocol === 'resps:' }
  const codec: SocketCodec = {
    ...(token !== undefined && { greeting: { bytes: command('AUTH', token), replies: 1 } }),
    request: requestOf(policy, throttle, String(cost)),
    reader: () => new RespAnswerReader(),
  }
  const errors = new ErrorTexts()
  const pool = new RequestPool(
    Array.from({ length: connections }, () => new SocketConnection(address, codec, errors)),
    PIPELINED,
  )
  return { take: (key) => pool.send(key), errors, close: async () => pool.close() }
}

function requestOf(policy: string | undefined, throttle: string | undefined, cost: string): (key: string) => string {
  if (throttle === undefined) {
    if (policy === undefined) throw new UsageError("say what to take: --policy NAME, or --throttle 'BURST COUNT PERIOD'")
    return (key) => command('SG.TAKE', policy, key, cost)
  }
  const [, burst, count, period] = THROTTLE.exec(throttle) ?? []
  if (burst === undefined || count === undefined || period === undefined)
    throw new UsageError(`--throttle must be three integers such as '15 30 60', not "${throttle}"`)
  return (key) => command('CL.THROTTLE', key, burst, count, period, cost)
}

function command(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
}

/** Reads replies that are a simple text, an error, an integer, or an array of integers whose first is 1 for a denial. */
class RespAnswerReader implements AnswerReader {
  #held = ''

  read(bytes: Buffer, answered: (outcome: LoadOutcome, error?: string) => void): void {
    const text = this.#held + bytes.toString('latin1')
    let at = 0
    for (;;) {
      const end = replyEnd(text, at)
      if (end === undefined) break
      if (text[at] === '-') answered('error', text.slice(at + 1, end - 2))
      else answered(text[at] === '*' && text.startsWith(':1\r\n', text.indexOf('\n', at) + 1) ? 'denied' : 'allowed')
      at = end
    }
    this.#held = text.slice(at)
  }
}

/** Where the reply that begins at `at` ends; undefined when it is not complete. */
function replyEnd(text: string, at: number): number | undefined {
  const lineEnd = text.indexOf('\r\n', at)
  if (lineEnd < 0) return undefined
  if ('+-:'.includes(text[at] as string)) return lineEnd + 2
  if (text[at] !== '*') throw new Error('the answer is not of the protocol of Redis')
  let end = lineEnd + 2
  for (let items = Number(text.slice(at + 1, lineEnd)); items > 0; items--) {
    const itemEnd = text.indexOf('\r\n', end)
    if (itemEnd < 0) return undefined
    end = itemEnd + 2
  }
  return end
}
