import { readdirSync, readFileSync } from 'node:fs'

/** The AssemblyScript files of the core: path in its folder to text. */
export type CoreSources = ReadonlyMap<string, string>

const ASSEMBLY = new URL('../../../sluicegate/assembly/', import.meta.url)
const YIELD_POINT = '@external("host", "yieldPoint") export declare function yieldPoint(): void'

/**
 * A yield point counts down in the core itself and leaves it only where the thread is to be switched: nearly all of them cost
 * a nanosecond, not a call into JavaScript.
 */
const COUNTED_YIELD_POINT = `@external("host", "switchThread") declare function switchThread(): void
let granted: i32 = 0
export function grant(steps: i32): void { granted = steps }
export function left(): i32 { return granted }
export function yieldPoint(): void { if (--granted < 0) switchThread() }
`

const EXTRA_EXPORTS = `export { grant, left } from "./host"
export {
  BAN_FILTER, BAN_FILTER_SLOTS, DESCRIPTORS, DESCRIPTOR_SIZE, ENTRY_SIZE, EPOCH, RECORDS, RECORD_SIZE, RINGS, TAKEOVER_HIGH,
} from "./memory-map"
import { openAnyDescriptor, stageIn } from "./atomics/kcas"
import { forgetRings } from "./algorithms/hold-ring"
import { endSpending } from "./table/beside-holds"

/** What a thread that is stopped for good leaves in its own globals is no part of the next schedule. */
export function startOver(): void {
  stageIn(0)
  forgetRings()
  endSpending()
  openAnyDescriptor()
}
`

/** Where a thread looks for a descriptor first depends on its past; each schedule has to begin alike. */
const FORGET_DESCRIPTOR = `
export function openAnyDescriptor(): void {
  likely = 0
}
`

/** The same of whether it has met a ring. */
const FORGET_RINGS = `
export function forgetRings(): void {
  area = 0
}
`

/** One exact substitution in one file of the core. */
export interface Substitution {
  readonly file: string
  readonly from: string
  readonly to: string
}

/** The core as it stands in the working tree. */
export function coreSources(): CoreSources {
  const names = readdirSync(ASSEMBLY, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const paths = names.map((name) => name.replaceAll('\\', '/'))
  return new Map(paths.map((path) => [path, readFileSync(new URL(path, ASSEMBLY), 'utf8')]))
}

/** The same sources with a yield before every atomic operation, and queues of `entries` entries. */
export function exploredSources(sources: CoreSources, entriesPerLine: number): CoreSources {
  const flags = { EXPLORED: 'bool = true', ENTRIES_PER_LINE: `i32 = ${entriesPerLine}` }
  let text = sources.get('build-flags.ts') ?? ''
  for (const [name, value] of Object.entries(flags)) {
    const flag = new RegExp(`(export const ${name}: ).*`)
    if (!flag.test(text)) throw new Error(`build-flags.ts has no ${name} any more`)
    text = text.replace(flag, `$1${value}`)
  }
  const changed = new Map(sources).set('build-flags.ts', text)
  changed.set('index.ts', `${sources.get('index.ts')}\n${EXTRA_EXPORTS}`)
  changed.set('atomics/kcas.ts', `${sources.get('atomics/kcas.ts')}\n${FORGET_DESCRIPTOR}`)
  changed.set('algorithms/hold-ring.ts', `${sources.get('algorithms/hold-ring.ts')}\n${FORGET_RINGS}`)
  return substituted(changed, [{ file: 'host.ts', from: YIELD_POINT, to: COUNTED_YIELD_POINT }])
}

/**
 * The sources with some passages replaced.
 *
 * @throws {Error} when a passage does not stand exactly once in its file: a planted fault must not rot away unseen.
 */
export function substituted(sources: CoreSources, substitutions: readonly Substitution[]): CoreSources {
  const changed = new Map(sources)
  for (const { file, from, to } of substitutions) {
    const parts = (changed.get(file) ?? '').split(from)
    if (parts.length !== 2) throw new Error(`${file} has this passage ${parts.length - 1} times, not once:\n${from}`)
    changed.set(file, parts.join(to))
  }
  return changed
}

/** A fault planted in the core, and the scenario that has to find it. */
export interface Mutant {
  readonly name: string
  readonly substitutions: readonly Substitution[]
  readonly scenario: string
  readonly preemptions: number
  readonly deaths: number
}

export function mutant(name: string, scenario: string, [preemptions, deaths]: [number, number], ...substitutions: Substitution[]): Mutant {
  return { name, scenario, preemptions, deaths, substitutions }
}

/** Makes substitutions in one file of the core. */
export function inFile(file: string): (from: string, to: string) => Substitution {
  return (from, to) => ({ file, from, to })
}
