import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Limiter } from 'sluicegate-server/dist/protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { GrpcTestClient } from '../grpc-client.js'
import { send } from '../many-connections.js'
import { commandBytes } from '../resp-session.js'
import type { StormedService } from './stormed-service.js'

/** A client that means no harm: each call rejects where the answer is not the right one. */
export interface Bystander {
  call(): Promise<void>
  close(): void
}

const LIMIT = 3
const ANSWER_MS = 30_000

/** Over each protocol one that keeps its connection, and over HTTP one that opens a new one for each call. Each has its keys. */
export async function bystanders({ urls }: Pick<StormedService, 'urls'>): Promise<Bystander[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return [overHttp(urls.http, 'kept', agent), overHttp(urls.http, 'new'), overGrpc(urls.grpc), await overResp(urls.resp)]
}

/**
 * Those over gRPC and RESP, as the clients of a service behave that replaces a worker: what RESP has not answered when its connection is closed is called once
 * more over another. A call that was decided and not answered would be charged twice, and the answers wrong from then on.
 */
export async function reconnectingBystanders({ urls }: Pick<StormedService, 'urls'>): Promise<Bystander[]> {
  return [overGrpc(urls.grpc), await overResp(urls.resp, { reconnects: true })]
}

/** The calls of a key: as many as the policy allows, and one more. */
function inTurn(name: string, call: (key: string) => Promise<boolean>): () => Promise<void> {
  let nth = 0
  let key = ''
  return async () => {
    if (nth === 0) key = `${name} ${randomUUID()}`
    assert.equal(await call(key), nth < LIMIT, `call ${nth + 1} over ${name}, where ${LIMIT} are allowed`)
    nth = (nth + 1) % (LIMIT + 1)
  }
}

function overHttp(url: URL, name: string, agent?: Agent): Bystander {
  const call = inTurn(`HTTP ${name}`, async (key) => {
    const path = `/v1/take?policy=bystanders&key=${encodeURIComponent(key)}`
    const { status, body } = await send(url.origin, path, agent && { agent })
    assert.ok(status === 200 || status === 429, `status ${status}`)
    assert.equal(body.allowed, status === 200)
    return status === 200
  })
  return { call, close: () => agent?.destroy() }
}

function overGrpc(url: URL): Bystander {
  const client = new GrpcTestClient(url.host)
  const call = inTurn('gRPC', async (key) => {
    const { allowed } = await client.call(Limiter.method.take, { policy: 'bystanders', keys: [key], cost: 1n })
    return allowed
  })
  return { call, close: () => client[Symbol.dispose]() }
}

async function overResp(url: URL, { reconnects = false } = {}): Promise<Bystander> {
  let socket = await connected(url)
  const answered = async (command: Buffer): Promise<Buffer> => {
    const answer = await answerOver(socket, command)
    if (answer !== undefined) return answer
    assert.ok(reconnects, 'the service closed a connection of RESP')
    socket = await connected(url)
    return answered(command)
  }
  const call = inTurn('RESP', async (key) => {
    const reply = (await answered(commandBytes('SG.TAKE', 'bystanders', key))).toString()
    assert.match(reply, /^\*5\r\n:[01]\r\n:3\r\n/)
    return reply.startsWith('*5\r\n:0')
  })
  return { call, close: () => socket.destroy() }
}

async function connected(url: URL): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname)
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  return socket
}

/** Undefined where the connection closed before the answer. */
function answerOver(socket: Socket, command: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => end(() => reject(new Error('RESP gave no answer'))), ANSWER_MS)
    const onData = (reply: Buffer): void => end(() => resolve(reply))
    const onClose = (): void => end(() => resolve(undefined))
    const end = (settle: () => void): void => {
      clearTimeout(late)
      socket.off('data', onData).off('close', onClose)
      settle()
    }
    socket.on('data', onData).on('close', onClose)
    if (socket.destroyed) onClose()
    else socket.write(command)
  })
}
