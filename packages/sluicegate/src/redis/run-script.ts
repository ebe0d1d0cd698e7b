import type { KeyFault } from '../fleet/key-fault.js'
import type { Recall } from '../fleet/recall.js'
import type { ScriptRunner } from './script-runner.js'
import { faultOf } from './server-fault.js'

/** A script and the SHA-1 by which a server that has seen it knows it. */
export interface Script {
  readonly sha1: string
  readonly source: string
}

/**
 * Runs a script: by its hash, and only when the server says that it does not know it, once in full. So scripts need no loading: a server
 * that forgot them (SCRIPT FLUSH, a failover, a restart) or never had them (a new shard) gets them with the first call.
 *
 * Rejects with a {@link KeyFault} when the server is well and cannot decide about these keys, else with what the runner said.
 *
 * @param read what a reply says.
 */
export function runScript<Answer>(
  runner: ScriptRunner,
  { sha1, source }: Script,
  keys: readonly string[],
  args: readonly string[],
  read: (reply: unknown) => Answer,
  recall?: Recall,
): Promise<Answer> {
  const key = keys[0] as string
  return runner.send(key, ['EVALSHA', sha1, String(keys.length), ...keys, ...args], recall).then(read, (error) => {
    if (!isUnknownScript(error) || recall?.aborted === true) throw faultOf(error)
    return runner.send(key, ['EVAL', source, String(keys.length), ...keys, ...args], recall).then(read, (again) => {
      throw faultOf(again)
    })
  })
}

/** The server refused before it did anything. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && /^(?:NOSCRIPT |(?:An error was signalled by the server: - )?NoScriptError: )/.test(error.message)
}
