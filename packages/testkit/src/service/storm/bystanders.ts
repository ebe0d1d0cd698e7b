import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { Agent as EncryptedAgent } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as encrypt } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { Limiter } from 'sluicegate-server/dist/protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { commandBytes } from '../../servers/resp.js'
import { GrpcTestClient } from '../grpc-client.js'
import { send } from '../many-connections.js'
import type { StormedService } from './stormed-service.js'

/** A client that means no harm: each call rejects where the answer is not the right one. */
export interface Bystander {
  call(): Promise<void>
  close(): void
}

const LIMIT = 3
const ANSWER_MS = 30_000

/** Over each protocol one that keeps its connection, and over HTTP one that opens a new one for each call. Each has its keys. */
export async function bystanders({ urls, ca }: Pick<StormedService, 'urls' | 'ca'>): Promise<Bystander[]> {
  const agent = (options = {}): Agent => (ca === undefined ? new Agent(options) : new EncryptedAgent({ ...options, ca }))
  const kept = agent({ keepAlive: true, maxSockets: 1 })
  const others = [overHttp(urls.http, 'kept', () => kept), overHttp(urls.http, 'new', () => agent()), overGrpc(urls.grpc, ca)]
  return [...others, await overResp(urls.resp, { ca })]
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

function overHttp(url: URL, name: string, agentOf: () => Agent): Bystander {
  const call = inTurn(`HTTP ${name}`, async (key) => {
    const path = `/v1/take?policy=bystanders&key=${encodeURIComponent(key)}`
    const { status, body } = await send(url.origin, path, { agent: agentOf() })
    assert.ok(status === 200 || status === 429, `status ${status}`)
    assert.equal(body.allowed, status === 200)
    return status === 200
  })
  return { call, close: () => agentOf().destroy() }
}

function overGrpc(url: URL, ca?: string): Bystander {
  const client = new GrpcTestClient(url.host, {}, ca === undefined ? undefined : credentials.createSsl(Buffer.from(ca)))
  const call = inTurn('gRPC', async (key) => {
    const { allowed } = await client.call(Limiter.method.take, { policy: 'bystanders', keys: [key], cost: 1n })
    return allowed
  })
  return { call, close: () => client[Symbol.dispose]() }
}

async function overResp(url: URL, { reconnects = false, ca }: { reconnects?: boolean; ca?: string | undefined } = {}): Promise<Bystander> {
  let socket = await connected(url, ca)
  const answered = async (command: Buffer): Promise<Buffer> => {
    const answer = await answerOver(socket, command)
    if (answer !== undefined) return answer
    assert.ok(reconnects, 'the service closed a connection of RESP')
    socket = await connected(url, ca)
    return answered(command)
  }
  const call = inTurn('RESP', async (key) => {
    const reply = (await answered(commandBytes('SG.TAKE', 'bystanders', key))).toString()
    assert.match(reply, /^\*5\r\n:[01]\r\n:3\r\n/)
    return reply.startsWith('*5\r\n:0')
  })
  return { call, close: () => socket.destroy() }
}

async function connected({ port, hostname: host }: URL, ca?: string): Promise<Socket> {
  const socket = ca === undefined ? connect(Number(port), host) : encrypt({ port: Number(port), host, ca })
  await once(socket, ca === undefined ? 'connect' : 'secureConnect')
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
