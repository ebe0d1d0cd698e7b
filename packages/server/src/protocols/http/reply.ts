import type { Socket } from 'node:net'
import type { HeaderPair } from 'sluicegate/http'
import type { WholeResponse } from './handler.js'
import type { Problem } from './problem.js'

/** The media type of a problem: RFC 9457, section 3. */
const PROBLEM_TYPE = 'application/problem+json'

export const JSON_TYPE = 'application/json'

/** On every response: an answer must not be cached, and its type must not be guessed. */
export const ALWAYS: readonly HeaderPair[] = [
  ['Cache-Control', 'no-store'],
  ['X-Content-Type-Options', 'nosniff'],
]

const ALWAYS_FLAT = ALWAYS.flat()

/** Answers with a body. */
export function reply(
  response: WholeResponse,
  status: number,
  type: string,
  body: string | Buffer,
  headers: readonly HeaderPair[] = [],
): void {
  const list = headerList(headers)
  list.push('Content-Type', type, 'Content-Length', String(Buffer.byteLength(body)))
  response.writeHead(status, list)
  response.end(body)
}

/** Answers without a body. */
export function replyEmpty(response: WholeResponse, status: 204 | 403 | 429, headers: readonly HeaderPair[]): void {
  const list = headerList(headers)
  // A 204 has no length by definition.
  if (status !== 204) list.push('Content-Length', '0')
  response.writeHead(status, list)
  response.end()
}

export function replyProblem(response: WholeResponse, problem: Problem): void {
  reply(response, problem.status, PROBLEM_TYPE, problem.toJson(), problem.headers)
}

/** Names and values in turn, the form that Node writes out without a copy. */
function headerList(headers: readonly HeaderPair[]): string[] {
  const list = [...ALWAYS_FLAT]
  for (const [name, value] of headers) list.push(name, value)
  return list
}

/** Writes a response to a socket for which Node has created none, and closes the connection after it. */
export function endWithProblem(socket: Socket, problem: Problem): void {
  const body = problem.toJson()
  const { title } = JSON.parse(body) as { title: string }
  const headers = [...ALWAYS, ['Connection', 'close'], ['Content-Type', PROBLEM_TYPE], ['Content-Length', String(Buffer.byteLength(body))]]
  const head = [`HTTP/1.1 ${problem.status} ${title}`, ...headers.map((pair) => pair.join(': '))]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
