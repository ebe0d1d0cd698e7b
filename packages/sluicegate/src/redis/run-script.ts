import type { ScriptRunner } from './script-runner.js'

/** A script and the SHA-1 by which a server that has seen it knows it. */
export interface Script {
  readonly sha1: string
  readonly source: string
}

/**
 * Runs a script: by its hash, and only when the server says that it does not know it, once in full. So scripts need no loading: a server
 * that forgot them (SCRIPT FLUSH, a failover, a restart) or never had them (a new shard) gets them with the first call.
 */
export async function runScript(
  runner: ScriptRunner,
  { sha1, source }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const key = keys[0] as string
  const rest = [String(keys.length), ...keys, ...args]
  try {
    return await runner.send(key, ['EVALSHA', sha1, ...rest])
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    return runner.send(key, ['EVAL', source, ...rest])
  }
}

/** The server refused before it did anything. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && /^(?:NOSCRIPT |(?:An error was signalled by the server: - )?NoScriptError: )/.test(error.message)
}
