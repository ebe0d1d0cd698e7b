import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { everyNth } from 'sluicegate-testkit'
import type { StreamedLine, StreamingStart } from 'sluicegate-testkit/cluster/streaming-fleet.js'
import { fixedWindow, tokenBucket } from '../index.js'
import type { OutageMode } from '../shared/outage/local-share.js'

/** A primary in a separate process, with workers whose takes are printed line by line. */
class StreamingPrimary {
  readonly process: ChildProcess
  private readonly lines: AsyncIterator<string>

  constructor(start: StreamingStart) {
    const program = fileURLToPath(import.meta.resolve('sluicegate-testkit/cluster/streaming-fleet.js'))
    this.process = spawn(process.execPath, [program, JSON.stringify(start)], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.lines = createInterface({ input: this.process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  }

  async next(): Promise<StreamedLine> {
    const { value, done } = await this.lines.next()
    if (done === true) throw new Error('the program ended')
    return JSON.parse(value) as StreamedLine
  }

  /** Reads until the lines since now are enough. */
  async until(isEnough: (lines: readonly StreamedLine[]) => boolean): Promise<readonly StreamedLine[]> {
    const lines: StreamedLine[] = []
    while (!isEnough(lines)) lines.push(await this.next())
    return lines
  }

  /** Ends all: workers end when their channel does. */
  end(): void {
    this.process.kill('SIGKILL')
  }
}

/** The sum of some counts over lines. */
function countOf(lines: readonly StreamedLine[], of: (line: StreamedLine) => number | undefined): number {
  return lines.reduce((sum, line) => sum + (of(line) ?? 0), 0)
}

const WORKERS = 2
const LIMIT = 100_000
const LOCAL_SHARE = 0.0005
/** What each worker may pass by itself. */
const OWN = 50

/** Some of a worker's takes came out like this. */
const hasOutage = ({ passed, denied }: StreamedLine): boolean => (passed.outage ?? 0) + (denied.outage ?? 0) > 0
const isServed = (line: StreamedLine): boolean => !hasOutage(line) && (line.passed.lease ?? 0) + (line.passed.store ?? 0) > 0
const byAll = (lines: readonly StreamedLine[], of: (line: StreamedLine) => boolean, times = 1): boolean => {
  const counts = new Map<number, number>()
  for (const line of lines.filter(of)) counts.set(line.pid, (counts.get(line.pid) ?? 0) + 1)
  return [...counts.values()].filter((count) => count >= times).length === WORKERS
}

for (const [i, by] of (['fork', 'cluster'] as const).entries()) {
  for (const [j, outage] of (['local', 'open', 'closed'] satisfies OutageMode[]).entries()) {
    everyNth(3 * i + j, 4)(
      `${by}: while the primary stands still its workers decide as in an outage (${outage}), and go on when it does`,
      async () => {
        const primary = new StreamingPrimary({
          policy: fixedWindow({ limit: LIMIT, window: '365d', name: 'x' }),
          workers: WORKERS,
          by,
          options: { outage, share: LOCAL_SHARE, timeout: 200 },
          takes: 40,
        })
        try {
          await primary.until((lines) => byAll(lines, isServed))
          primary.process.kill('SIGSTOP')
          const without = await primary.until((lines) => byAll(lines, hasOutage, 10))
          const passed = countOf(without, (line) => line.passed.outage)
          const denied = countOf(without, (line) => line.denied.outage)
          if (outage === 'open') assert.ok(passed > 0 && denied === 0)
          else assert.ok(denied > 0 && passed <= (outage === 'local' ? WORKERS * OWN : 0), `${passed} passed, ${denied} denied`)
          for (const line of without) assert.ok(line.retryAfterMs >= 1)
          primary.process.kill('SIGCONT')
          await primary.until((lines) => byAll(lines, isServed, 2))
        } finally {
          primary.process.kill('SIGCONT')
          primary.end()
        }
      },
    )
  }
}

test('a primary that is killed leaves its workers to themselves, and none of them fails', async () => {
  const primary = new StreamingPrimary({
    policy: tokenBucket({ limit: 1000, window: '1s', name: 'x' }),
    workers: WORKERS,
    by: 'fork',
    takes: 10,
  })
  try {
    await primary.until((lines) => byAll(lines, isServed))
  } finally {
    primary.end()
  }
  // They end when their channel does; what they write until then is whole.
  await assert.rejects(
    primary.until(() => false),
    /ended/,
  )
})
