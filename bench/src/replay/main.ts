import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createGzip } from 'node:zlib'
import { measuredWhere } from 'sluicegate-commands/load/load-result.js'
import { Random } from 'sluicegate-testkit'
import { givenOptions, RAW } from '../committed-form.js'
import { printReport, writeResults } from '../report.js'
import { type ReplayFigure, type ReplayResults, replayReport } from '../small-tables.js'

const USAGE = `npm run bench:replay -- [--lines N] [--rounds N]

Writes access logs of 2,000,000 lines, and reads each with wc -l and with sluicegate replay in turn, 5 times. Prints the table;
with the default numbers it also writes bench/results/local/replay.json, from which npm run plots fills docs/replay.md.`

const COMMAND = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const [LINES, ROUNDS] = [2_000_000, 5]
const CLIENTS = 20_000
const LINES_PER_WRITE = 20_000
const LOOK_MS = 50
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const CONFIG = 'policies:\n  per-client: { algorithm: token-bucket, limit: 100, window: 1m }\n'

const values = givenOptions(USAGE, {
  lines: { type: 'string', default: String(LINES) },
  rounds: { type: 'string', default: String(ROUNDS) },
})
const [lines, rounds] = [Number(values.lines), Number(values.rounds)]

if (!(lines >= 1) || !(rounds >= 1)) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  try {
    await measure(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function measure(folder: string): Promise<void> {
  const where = measuredWhere()
  const config = join(folder, 'limits.yaml')
  writeFileSync(config, CONFIG)
  const logs = [
    ['combined', join(folder, 'combined.log')],
    ['combined, gzip', join(folder, 'combined.log.gz')],
    ['JSON', join(folder, 'json.log')],
  ] as const
  console.error(`writing ${lines.toLocaleString('en')} lines of each log`)
  await writeLog(logs[0][1], combinedLine)
  await pipeline(createReadStream(logs[0][1]), createGzip({ level: 1 }), createWriteStream(logs[1][1]))
  await writeLog(logs[2][1], jsonLine)
  const figures: ReplayFigure[] = []
  for (const [log, file] of logs) figures.push(await figureOf(log, file, config))
  const results: ReplayResults = { kind: 'replay', where, lines, figures }
  printReport(replayReport(results))
  if (lines === LINES && rounds === ROUNDS) writeResults(`${RAW}replay.json`, results)
}

async function figureOf(log: string, file: string, config: string): Promise<ReplayFigure> {
  const linesPerSecond: number[] = []
  const wcLinesPerSecond: number[] = []
  let peakMegabytes = 0
  const count = file.endsWith('.gz') ? (['sh', ['-c', 'gzip -dc "$0" | wc -l', file]] as const) : (['wc', ['-l', file]] as const)
  for (let round = 0; round < rounds; round++) {
    console.error(`${log}: round ${round + 1} of ${rounds}`)
    wcLinesPerSecond.push(lines / (await timeOf(count[0], count[1])).seconds)
    const { seconds, megabytes } = await timeOf(process.execPath, [COMMAND, 'replay', file, '--config', config, '--json'])
    linesPerSecond.push(lines / seconds)
    peakMegabytes = Math.max(peakMegabytes, megabytes)
  }
  return { log, megabytes: statSync(file).size / 1e6, linesPerSecond, wcLinesPerSecond, peakMegabytes }
}

/** Start and end of the program included. */
async function timeOf(program: string, args: readonly string[]): Promise<{ seconds: number; megabytes: number }> {
  const startMs = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore'] })
  let megabytes = 0
  const looking = setInterval(() => {
    try {
      megabytes = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? megabytes * 1_000) / 1_000
    } catch {
      // It has ended.
    }
  }, LOOK_MS)
  const [code] = await once(child, 'close')
  clearInterval(looking)
  if (code !== 0) throw new Error(`${program} ${args[0]} ended with ${code}`)
  return { seconds: (performance.now() - startMs) / 1_000, megabytes }
}

interface Request {
  readonly address: string
  readonly time: Date
  readonly path: string
  readonly status: number
}

async function writeLog(file: string, lineOf: (request: Request) => string): Promise<void> {
  const random = new Random(1)
  const out = createWriteStream(file)
  for (let at = 0; at < lines; at += LINES_PER_WRITE) {
    const text = Array.from({ length: Math.min(LINES_PER_WRITE, lines - at) }, (_, i) => lineOf(requestOf(random, at + i)))
    if (!out.write(text.join(''))) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
}

/** 5,000 requests a second of clients of which some send far more than others. */
function requestOf(random: Random, i: number): Request {
  const client = Math.floor(CLIENTS * random.fraction() ** 4)
  return {
    address: `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`,
    time: new Date(1_789_000_000_000 + Math.floor(i / 5)),
    path: `/api/items/${random.integer(1, 9_999)}?page=${random.integer(1, 9)}`,
    status: random.integer(0, 9) === 0 ? 404 : 200,
  }
}

function combinedLine({ address, time, path, status }: Request): string {
  const iso = time.toISOString()
  const date = `${iso.slice(8, 10)}/${MONTHS[time.getUTCMonth()]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
  return `${address} - - [${date}] "GET ${path} HTTP/1.1" ${status} 5316 "https://example.com/start" "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"\n`
}

function jsonLine({ address, time, path, status }: Request): string {
  return `${JSON.stringify({ time: time.toISOString(), remote_addr: address, request_method: 'GET', request_uri: path, status, body_bytes_sent: 5_316 })}\n`
}
