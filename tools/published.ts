import { readFileSync } from 'node:fs'

/** The published packages and the folder of each. */
export const FOLDER_OF = { sluicegate: 'packages/sluicegate', 'sluicegate-server': 'packages/server' } as const
export type Published = keyof typeof FOLDER_OF

/** An entry in `exports` of package.json. Those of runtimes that know ES modules alone have that form alone. */
export interface Entry {
  readonly import: { readonly types: string; readonly default: string; readonly node?: string }
  readonly require?: { readonly types: string; readonly default: string }
}

/** Entry points with code: `./package.json` is none. */
export function entriesOf(folder: string): Entry[] {
  const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as { exports: Record<string, Entry | string> }
  return Object.values(exports).filter((entry) => typeof entry !== 'string')
}
