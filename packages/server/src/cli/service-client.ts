import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { UsageError } from './usage-error.js'

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

  /** A response whose body is still to be read. */
  open(path: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = this.#request(path, resolve)
      sent.once('error', (error) => reject(new UsageError(`${this.#url} cannot be reached: ${error.message}`, 1)))
      sent.end()
    })
  }

  #request(path: string, answered: (response: IncomingMessage) => void) {
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const options: RequestOptions = { path, headers, agent: false }
    if (this.#url.startsWith('unix:'))
      return httpRequest({ ...options, socketPath: this.#url.slice('unix:'.length), host: 'localhost' }, answered)
    const url = new URL(path, this.#url)
    return url.protocol === 'https:'
      ? httpsRequest(url, { headers, agent: false }, answered)
      : httpRequest(url, { headers, agent: false }, answered)
  }
}
