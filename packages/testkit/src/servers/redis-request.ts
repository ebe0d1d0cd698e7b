import { connect } from 'node:net'
import { commandBytes, ErrorReply, type RespReply, repliesIn } from './resp.js'

/** Scripts that never end are asked for, too. */
const LONGEST_MS = 300_000

/**
 * What a server answers to one command on a connection of its own: a text or a number, or a line for each item of a list, as `redis-cli` prints
 * it. Rejects when the server cannot be reached, closes the connection, or answers with an error.
 */
export function redisRequest(
  address: { readonly host: string; readonly port: number },
  command: readonly string[],
  longestMs = LONGEST_MS,
) {
  return new Promise<string>((resolve, reject) => {
    const socket = connect(address)
    const fail = (reason: string): void => {
      socket.destroy()
      reject(new Error(`${command.join(' ')} on port ${address.port}: ${reason}`))
    }
    let received = Buffer.alloc(0)
    socket.on('data', (data) => {
      received = Buffer.concat([received, data])
      const reply = firstIn(received)
      if (reply === undefined) return
      if (reply instanceof ErrorReply) return fail(reply.message)
      socket.destroy()
      resolve(printed(reply).trimEnd())
    })
    socket.once('error', ({ message }) => fail(message))
    socket.once('close', () => fail('the connection was closed'))
    socket.setTimeout(longestMs, () => fail(`no answer in ${longestMs} ms`))
    socket.write(commandBytes(...command))
  })
}

function firstIn(bytes: Buffer): RespReply | undefined {
  try {
    return repliesIn(bytes)[0]
  } catch {
    return undefined
  }
}

function printed(reply: RespReply): string {
  if (reply instanceof ErrorReply) return reply.message
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1').toString()
  return Array.isArray(reply) ? reply.map(printed).join('\n') : String(reply ?? '')
}
