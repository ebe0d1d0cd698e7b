import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { manualClock } from 'sluicegate'
import { runService } from 'sluicegate-testkit/service/running-service.js'

// The programs of docs/clients.md and the calls of the pages of the service, copied as a reader copies them, against a service with the file of the page.

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PAGE = readFileSync(`${ROOT}docs/clients.md`, 'utf8')
const LISTEN = 'listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0, resp: 127.0.0.1:0 }\n'
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
  const service = await runService(t, LISTEN + yamlIn(PAGE)[0])
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

for (const page of ['service', 'service-api']) {
  test(`the calls of docs/${page}.md are answered as the page says, by a service with the file that stands before them`, async (t) => {
    const groups = callsIn(readFileSync(`${ROOT}docs/${page}.md`, 'utf8'))
    assert.ok(groups.size > 0)
    for (const [yaml, calls] of groups) {
      const { url } = await runService(t, LISTEN + yaml, { clock: manualClock(Date.now()) })
      const script = calls.map(({ code }) => `${code.replaceAll('http://127.0.0.1:8080', url)}\necho '${END}'\n`).join('')
      const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: FOLDER })
      for (const [i, answer] of stdout.split(`${END}\n`).slice(0, -1).entries()) {
        const { code = '', expected = '' } = calls[i] ?? {}
        assert.doesNotMatch(answer, /"code":|^$/, code)
        for (const line of expected.split('\n').filter((each) => each !== '')) assert.match(answer, likeLine(line), code)
      }
    }
  })
}

interface Call {
  readonly code: string
  readonly expected: string | undefined
}

const END = '-- end of a block --'

/** Blocks of shell that call a service, with what they print, by the file that stands before them. What one defines is there for those after it. */
function callsIn(page: string): ReadonlyMap<string, readonly Call[]> {
  const groups = new Map<string, Call[]>()
  let file = ''
  for (const [, language, block = '', expected] of page.matchAll(/```(yaml|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?/gs)) {
    file = language === 'yaml' ? block : (/<<'END'\n(.*?)^END$/ms.exec(block)?.[1] ?? file)
    if (language === 'yaml' || !block.includes('127.0.0.1:8080')) continue
    const code = block.replace(/^cat >.*?^END$/ms, '').replace(/^npx .*$/m, '')
    groups.set(file, [...(groups.get(file) ?? []), { code, expected }])
  }
  return groups
}

/** `...` in it is any text. */
function likeLine(line: string): RegExp {
  const parts = line.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`, 'm')
}

function yamlIn(page: string): readonly string[] {
  return [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = '']) => yaml)
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
