import type { Socket } from 'node:net'
import { PROBLEM_MEDIA_TYPE } from 'sluicegate/http'
import type { Problem } from './problem.js'
import { ALWAYS } from './reply.js'

/** Writes a response to a socket for which Node has created none, and closes the connection after it. */
export function endWithProblem(socket: Socket, problem: Problem): void {
  const body = problem.toJson()
  const { title } = JSON.parse(body) as { title: string }
  const headers = [
    ...ALWAYS,
    ['Connection', 'close'],
    ['Content-Type', PROBLEM_MEDIA_TYPE],
    ['Content-Length', String(Buffer.byteLength(body))],
  ]
  const head = [`HTTP/1.1 ${problem.status} ${title}`, ...headers.map((pair) => pair.join(': '))]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
