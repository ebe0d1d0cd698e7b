import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Files that are in git or would be, from the root, whose names `pattern` matches. */
export function trackedFiles(pattern: RegExp): string[] {
  const list = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { encoding: 'utf8' })
  return list.split('\0').filter((file) => pattern.test(file) && existsSync(file))
}
