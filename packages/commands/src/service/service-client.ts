import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { UsageError } from '../terminal/usage-error.js'

const POST_TIMEOUT_MS = 10_000

/** An answer of the service, its body whole. */
export interface ServiceAnswer {
  readonly status: number
  readonly body: string
}

/** A running service, as commands of the terminal reach it. */
export class ServiceClient {
  readonly #url: string
  readonly #token: string | undefined

  /** @param url `http://127.0.0.1:8080`, `https://...`, or `unix:/run/sluicegate.sock`. */
  constructor(url: string, token: string | undefined) {
    if (!url.startsWith('unix:') && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
      throw new UsageError(`--url must be such as http://127.0.0.1:8080 or unix:/run/sluicegate.sock, not "${url}"`)
    this.#url = url
    this.#token = token
  }

  /** @throws {UsageError} when the service cannot be reached. */
  async get(path: string): Promise<ServiceAnswer> {
    const response = await this.open(path)
    let body = ''
    response.setEncoding('utf8')
    for await (const chunk of response) body += chunk
    return { status: response.statusCode ?? 0, body }
  }

  /** @throws {UsageError} when the service cannot be reached, or does not answer within {@link POST_TIMEOUT_MS}. */
  async post(path: string, body: object): Promise<ServiceAnswer> {
    const text = JSON.stringify(body)
    const response = await this.#sent(path, { method: 'POST', signal: AbortSignal.timeout(POST_TIMEOUT_MS) }, text)
    let answer = ''
    response.setEncoding('utf8')
    for await (const chunk of response) answer += chunk
    return { status: response.statusCode ?? 0, body: answer }
  }

  /** A response whose body is still to be read. */
  open(path: string): Promise<IncomingMessage> {
    return this.#sent(path, {})
  }

  #sent(path: string, options: RequestOptions, body?: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = this.#request(path, options, resolve)
      sent.once('error', (error) => reject(new UsageError(`${this.#url} cannot be reached: ${error.message}`, 1)))
      if (body !== undefined) sent.setHeader('content-type', 'application/json')
      sent.end(body)
    })
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
