import { spawnSync } from 'node:child_process'

/** Runs a program; if it fails, its output is the fault. */
export function faultsOfCommand(command: string, args: readonly string[]): string[] {
  const done = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } })
  if (done.status === 0) return []
  const output = `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}`.trim()
  return [output || `${command} ended with code ${done.status} and said nothing`]
}

/** The same, for a program that came with npm. */
export function faultsOfTool(tool: string, ...args: readonly string[]): string[] {
  return faultsOfCommand(`node_modules/.bin/${tool}`, args)
}

/** What TypeScript's compiler finds: the one that builds, as two packages have a program of its name. */
export function faultsOfCompiler(...args: readonly string[]): string[] {
  return faultsOfCommand('node_modules/typescript-native/bin/tsc', args)
}
