import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { UsageError } from '../terminal/usage-error.js'

/** How long a service may take to answer. */
export const ANSWER_MS = 5_000
/** The metrics of a thousand policies are a megabyte. */
const MAX_ANSWER_CHARACTERS = 16_777_216

/** An answer of the service, its body whole. */
export interface ServiceAnswer {
  readonly status: number
  readonly body: string
}

/** An answer whose body goes on. */
export interface OpenAnswer {
  readonly response: IncomingMessage
  /** The service has said what was awaited: from now on it has the time of an answer again. */
  renew(): void
}

/** A running service, as commands of the terminal reach it. */
export class ServiceClient {
  readonly #url: string
  readonly #token: string | undefined
  readonly #timeoutMs: number

  /** @param url `http://127.0.0.1:8080`, `https://...`, or `unix:/run/sluicegate.sock`. */
  constructor(url: string, token: string | undefined, timeoutMs: number = ANSWER_MS) {
    if (!url.startsWith('unix:') && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
      throw new UsageError(`--url must be such as http://127.0.0.1:8080 or unix:/run/sluicegate.sock, not "${url}"`)
    this.#url = url
    this.#token = token
    this.#timeoutMs = timeoutMs
  }

  /** @throws {UsageError} when the service cannot be reached, or has not answered in time. */
  get(path: string): Promise<ServiceAnswer> {
    return this.#answer(path, {})
  }

  /** @throws {UsageError} when the service cannot be reached, or has not answered in time. */
  post(path: string, body: object): Promise<ServiceAnswer> {
    return this.#answer(path, { method: 'POST' }, JSON.stringify(body))
  }

  /**
   * A response whose body is still to be read. It fails when it is not renewed for the time of an answer: single bytes say nothing.
   *
   * @throws {UsageError} when the service cannot be reached, or does not begin to answer in time.
   */
  async open(path: string): Promise<OpenAnswer> {
    const begin = new AbortController()
    const timer = setTimeout(() => begin.abort(), this.#timeoutMs)
    try {
      const response = await this.#sent(path, { signal: begin.signal })
      const late = setTimeout(() => response.destroy(this.#silent()), this.#timeoutMs)
      response.once('close', () => clearTimeout(late))
      return { response, renew: () => late.refresh() }
    } catch (error) {
      throw this.#fault(error, begin.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The time is that of the whole answer: a service that sends a byte now and then hangs, too. */
  async #answer(path: string, options: RequestOptions, text?: string): Promise<ServiceAnswer> {
    const signal = AbortSignal.timeout(this.#timeoutMs)
    try {
      const response = await this.#sent(path, { ...options, signal }, text)
      let body = ''
      response.setEncoding('utf8')
      for await (const chunk of response) {
        body += chunk
        if (body.length > MAX_ANSWER_CHARACTERS) throw new Error('this is no Sluicegate service: its answer does not end')
      }
      return { status: response.statusCode ?? 0, body }
    } catch (error) {
      throw this.#fault(error, signal)
    }
  }

  #sent(path: string, options: RequestOptions, body?: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = this.#request(path, options, resolve)
      sent.once('error', reject)
      if (body !== undefined) sent.setHeader('content-type', 'application/json')
      sent.end(body)
    })
  }

  #fault(error: unknown, signal: AbortSignal): UsageError {
    if (signal.aborted) return this.#silent()
    const { code, message } = error as NodeJS.ErrnoException
    const isNoSocket = this.#url.startsWith('unix:') && (code === 'ENOENT' || code === 'ENOTDIR')
    return new UsageError(`${this.#url} cannot be reached: ${isNoSocket ? 'there is no such socket; does the service run?' : message}`, 1)
  }

  #silent(): UsageError {
    return new UsageError(`${this.#url} has not answered within ${this.#timeoutMs / 1_000} s`, 1)
  }

  #request(path: string, options: RequestOptions, answered: (response: IncomingMessage) => void) {
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const all: RequestOptions = { ...options, headers, agent: false }
    if (this.#url.startsWith('unix:'))
      return httpRequest({ ...all, path, socketPath: this.#url.slice('unix:'.length), host: 'localhost' }, answered)
    const url = new URL(path, this.#url)
    return url.protocol === 'https:' ? httpsRequest(url, all, answered) : httpRequest(url, all, answered)
  }
}
