import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runService } from 'sluicegate-testkit/service/running-service.js'

// The programs of docs/clients.md, copied as a reader copies them, against a service.

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PAGE = readFileSync(`${ROOT}docs/clients.md`, 'utf8')
const CONFIG = `
listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0, resp: 127.0.0.1:0 }
policies:
  per-user: { algorithm: token-bucket, limit: 1, window: 1h }
  budget:
    levels:
      org: { algorithm: fixed-window, limit: 1000, window: month }
      user: { algorithm: fixed-window, limit: 50, window: year }
`
const FOLDER = mkdtempSync(join(tmpdir(), 'sluicegate-clients-'))
after(() => rmSync(FOLDER, { recursive: true, force: true }))

/** Each program: under which headings it stands, its file, what runs it. */
const PROGRAMS = [
  { at: '### Shell', file: 'take.sh', command: ['sh'] },
  { at: '### Python', file: 'take.py', command: ['/usr/bin/python3'] },
  { at: '### Go', file: 'take.go', command: ['go', 'run'] },
  { at: '### Java', file: 'Take.java', command: ['java'] },
  { at: '### PHP', file: 'take.php', command: ['php'] },
  { at: '### Ruby', file: 'take.rb', command: ['ruby'] },
  { at: '## RESP', file: 'over_resp.py', command: ['/usr/bin/python3'] },
  { at: '## gRPC', file: 'over_grpc.py', command: ['/usr/bin/python3'] },
] as const

/** Those that open work. */
const HOLD_PROGRAMS = [
  { at: '## Holds', file: 'hold.py' },
  { at: 'The same over gRPC:', file: 'hold_grpc.py' },
] as const

for (const { at, file } of HOLD_PROGRAMS) {
  test(`${file} spends as it goes, is denied by the level that has no room, and says when there is no decision`, async (t) => {
    if (file === 'hold_grpc.py') generateMessages()
    const { service, run } = await running(t, at, file, ['/usr/bin/python3'])
    assert.equal(await run(), 'used 35')
    assert.match(await run(), /^denied by user, again in \d+ ms$/)
    assert.equal(service.engine.policy('budget')?.holds.spent, 35)
    await service.stop()
    assert.equal(await run(), 'no decision')
  })
}

for (const { at, file, command } of PROGRAMS) {
  test(`the program of ${at.replace(/^#+ /, '')} takes, is denied with a wait, and says when there is no decision`, async (t) => {
    if (file === 'over_grpc.py') generateMessages()
    const { service, run } = await running(t, at, file, command)
    assert.match(await run(), /^allowed(, 0 left)?$/)
    assert.match(await run(), /^denied, again in \d+ m?s$/)
    await service.stop()
    assert.equal(await run(), 'no decision')
  })
}

/** A service, and a program of the page that calls it and prints what it decided. */
async function running(t: TestContext, at: string, file: string, command: readonly string[]) {
  const service = await runService(t, CONFIG)
  const { urls } = service
  const portOf = (listener: 'http' | 'grpc' | 'resp'): string => new URL(urls.get(listener)?.replace(/^\w+:/, 'http:') ?? '').port
  const code = inTime(blockAfter(at), file)
    .replaceAll(/\b8080\b/g, portOf('http'))
    .replaceAll(/\b8081\b/g, portOf('grpc'))
    .replaceAll(/\b6380\b/g, portOf('resp'))
  const path = join(FOLDER, file)
  writeFileSync(path, code)
  const run = async (): Promise<string> => {
    const [program = '', ...args] = command
    const env = { ...process.env, GOCACHE: join(FOLDER, 'go'), GO111MODULE: 'off' }
    return (await promisify(execFile)(program, [...args, path], { cwd: FOLDER, env })).stdout.trim()
  }
  return { service, run }
}

/** The first block of code below a heading. */
function blockAfter(heading: string): string {
  const [, rest = ''] = PAGE.split(`\n${heading}\n`)
  // The table of RESP stands before its program, and the heading of gRPC has none.
  const block = /\n```(?:sh|python|go|java|php|ruby)\n(.*?)\n```\n/s.exec(rest)?.[1]
  assert.ok(block, `docs/clients.md has a program below "${heading}"`)
  return `${block}\n`
}

/** On a busy machine a decision may be late, which is not what this tests. */
function inTime(code: string, file: string): string {
  const patient = code.replaceAll(/\b0\.25\b/g, '30').replaceAll(/\b250\b/g, '30_000')
  assert.notEqual(patient, code, `${file} has a time limit`)
  return patient
}

function generateMessages(): void {
  const proto = `${ROOT}packages/server/proto`
  mkdirSync(join(FOLDER, 'sluicegate'), { recursive: true })
  const into = [`--python_out=${FOLDER}`, `--grpc_python_out=${FOLDER}`]
  execFileSync('/usr/bin/python3', ['-m', 'grpc_tools.protoc', `--proto_path=${proto}`, ...into, 'sluicegate/v1/limiter.proto'])
}
