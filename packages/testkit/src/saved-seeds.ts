import { readFileSync } from 'node:fs'

/** Seeds of sequences that once found something, replayed in every run: `packages/testkit/seeds/oracle.json`. */
export function savedSeeds(): readonly number[] {
  const file = new URL('../seeds/oracle.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { seeds: number[] }).seeds
}
