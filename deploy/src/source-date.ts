import { spawnSync } from 'node:child_process'
import { ROOT } from './made-with.js'

/**
 * Seconds since 1970 that archives state as the time of their files: those of `SOURCE_DATE_EPOCH`, else of the last commit. The same sources
 * give the same bytes.
 */
export function sourceDateS(): number {
  const named = process.env.SOURCE_DATE_EPOCH
  if (named !== undefined) return Number(named)
  return Number(spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' }).stdout)
}
