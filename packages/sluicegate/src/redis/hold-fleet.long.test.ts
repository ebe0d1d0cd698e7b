import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '@redis/client'
import { LEVELS, mostOver, ORG, type Spend, type StreamingStart, spendsIn, TTL_MS, USERS } from 'sluicegate-testkit/holds/streaming-load.js'
import { RedisProcess } from 'sluicegate-testkit/servers/redis-process.js'
import { createLimiter } from '../create-limiter.js'
import { type LedgerRecord, replayedLedger } from '../ledger/index.js'
import { redis } from './index.js'

const PROGRAM = fileURLToPath(import.meta.resolve('sluicegate-testkit/holds/streaming-process.js'))
const PROCESSES = 8
const STREAMS = 1_000
/** Holds end half a ttl later than in memory, and at the end of a slot. */
const LONGEST_MS = TTL_MS * 1.5 + TTL_MS / 8
/** Until the calls that were under way are answered, on a busy machine. */
const SLACK_MS = 1_500

interface Streaming extends StreamingStart {
  readonly child: ChildProcess
}

function sum(spends: readonly Spend[]): number {
  return spends.reduce((all, { tokens }) => all + tokens, 0)
}

function written(file: string): Buffer {
  return existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
}

function ledgerOf({ records }: StreamingStart): readonly LedgerRecord[] {
  const lines = written(records).toString().split('\n')
  return lines.filter((line) => line.endsWith('}')).map((line) => JSON.parse(line) as LedgerRecord)
}

test('1,000 streams of eight processes, four of them killed and the store stopped twice, spend no more than their budgets; then all is free again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-holds-'))
  // What it has answered is on disk: a store that loses what it was told has no state to go by.
  const server = await RedisProcess.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  const running: ChildProcess[] = []
  t.after(async () => {
    for (const child of running) child.kill('SIGKILL')
    await server.stop()
    rmSync(folder, { recursive: true })
  })
  const begun = async (i: number): Promise<Streaming> => {
    const files = { spends: join(folder, `spends-${i}`), records: join(folder, `records-${i}`) }
    const start: StreamingStart = { url: server.url, streams: STREAMS / PROCESSES, seed: i + 1, ...files }
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(start)], { stdio: ['pipe', 'pipe', 'inherit'] })
    running.push(child)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    return { ...start, child }
  }
  const kill = async (processes: readonly Streaming[]): Promise<void> => {
    for (const { child } of processes) child.kill('SIGKILL')
    await Promise.all(processes.map(({ child }) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
  }
  const processes = await Promise.all(Array.from({ length: PROCESSES }, (_, i) => begun(i)))
  const [killed, others] = [processes.slice(0, PROCESSES / 2), processes.slice(PROCESSES / 2)]
  await after(2_000)
  server.pause()
  await after(1_500)
  server.resume()
  await after(2_000)
  await kill(killed.slice(0, 2))
  await after(1_000)
  await server.kill()
  await after(1_000)
  await server.start()
  await after(3_000)
  await kill(killed.slice(2))
  for (const { child } of others) child.stdin?.end()
  await Promise.all(others.map(({ child }) => child.exitCode ?? once(child, 'exit')))
  const endedMs = performance.now()

  const spends = processes.flatMap((each) => spendsIn(written(each.spends)))
  const spent = sum(spends)
  assert.ok(spent > 0 && spent <= ORG.limit, `${spent} spent of ${ORG.limit}`)
  const over = mostOver(spends)
  assert.ok(over <= 0, `a user was over by ${over}`)

  // What lost processes held is free again: from then on nothing moves.
  const client = createClient({ url: server.url })
  client.on('error', () => undefined)
  await client.connect()
  const limiter = createLimiter(LEVELS, { store: redis(client), mode: 'exact', outage: 'closed', timeout: 10_000 })
  t.after(() => {
    limiter.close()
    client.destroy()
  })
  let [charged, freeMs] = [0, 0]
  while (performance.now() - endedMs < LONGEST_MS + 2 * SLACK_MS) {
    const { parts = [] } = await limiter.peek({ org: 'acme', user: 'user 0' })
    const now = ORG.limit - (parts[0]?.remaining ?? 0)
    if (now !== charged) freeMs = performance.now() - endedMs
    charged = now
    await after(20)
  }
  assert.ok(freeMs <= LONGEST_MS + SLACK_MS, `free again after ${freeMs} ms`)
  assert.ok(charged >= spent, `${charged} charged, ${spent} spent`)

  const survivors = replayedLedger(others.flatMap(ledgerOf)).find(({ policy }) => policy === 'org')
  assert.equal(survivors?.spent, sum(others.flatMap((each) => spendsIn(written(each.spends)))))
  assert.equal(survivors?.held, 0)
  const whole = replayedLedger(processes.flatMap(ledgerOf)).find(({ policy }) => policy === 'org')?.spent ?? 0
  assert.ok(whole <= charged, `${whole} in the ledger, ${charged} charged`)
  t.diagnostic(
    `${spends.length} pieces of ${USERS} users, ${spent} of ${ORG.limit} tokens spent, ${charged - spent} more charged, ${whole} in the ledger, free after ${Math.round(freeMs)} ms`,
  )
})
