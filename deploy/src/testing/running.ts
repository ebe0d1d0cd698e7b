import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

const MOST_MS = 60_000

/** A program that runs until the test ends. */
export interface Running {
  readonly child: ChildProcess
  /** What it has printed, on both outputs. */
  readonly text: () => string
  /** Resolves with the text when it contains this. */
  printed(what: RegExp): Promise<RegExpExecArray>
  /** Sends a signal and resolves with the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts a program. Its environment is this and nothing else. */
export function running(t: Pick<TestContext, 'after'>, command: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  const [program = '', ...args] = command
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  child.stderr.on('data', (chunk) => (text += chunk))
  const closed = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await closed
  })
  return {
    child,
    text: () => text,
    printed: (what) =>
      eventually(
        () => what.exec(text),
        `${command.join(' ')} prints ${what}`,
        () => text,
      ),
    async end(signal) {
      child.kill(signal)
      return ((await closed) as [number | null])[0]
    },
  }
}

/** A service, by the addresses that it prints with `--json`. */
export async function servedAt(service: Running): Promise<Record<string, string>> {
  const [line] = await service.printed(/^\{"version".*\}$/m)
  return JSON.parse(line).listeners
}

/** What a command printed. Fails with its errors when its exit code is another than 0. */
export function output(command: readonly string[], env: NodeJS.ProcessEnv = {}, input?: Buffer): string {
  const [program = '', ...args] = command
  const { status, stdout, stderr, error } = spawnSync(program, args, { env, encoding: 'utf8', maxBuffer: 1e9, ...(input && { input }) })
  assert.equal(status, 0, `${command.join(' ')}: ${error?.message ?? ''}${stdout}${stderr}`)
  return stdout
}

/** Waits for a value; a busy machine may need long. */
export async function eventually<Value>(
  look: () => Value | undefined | null | false | Promise<Value | undefined | null | false>,
  what: string,
  detail: () => string = () => '',
): Promise<Value> {
  const untilMs = performance.now() + MOST_MS
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    assert.ok(performance.now() < untilMs, `not within ${MOST_MS / 1_000} s: ${what}\n${detail()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** The status and the decision of a take over HTTP. */
export async function take(url: string, policy: string, key = 'alice'): Promise<{ status: number; remaining: number }> {
  const response = await fetch(`${url}/v1/take?policy=${policy}&key=${key}`)
  return { status: response.status, remaining: ((await response.json()) as { remaining: number }).remaining }
}
