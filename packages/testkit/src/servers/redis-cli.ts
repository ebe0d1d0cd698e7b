import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Thousands of slots take their time to move, and each is reported. */
const LONGEST_MS = 300_000
const MOST_BYTES = 2 ** 26

/** What `redis-cli` prints. Rejects when the server cannot be reached or answers with an error. */
export async function redisCli(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('redis-cli', ['-e', ...args], { timeout: LONGEST_MS, maxBuffer: MOST_BYTES })
  return stdout.trimEnd()
}
