import type { Mutant } from './core-sources.js'
import type { ExploredPolicy } from './explored-policy.js'
import { ENCODING_MUTANTS, GROWTH_MUTANTS, HOLD_MUTANTS } from './mutants.js'
import { KCAS_MUTANTS, TABLE_MUTANTS } from './table-mutants.js'

/** What a run of all explorations found; `npm run prove:schedules` writes it. */
export interface ProofResults {
  readonly node: string
  readonly schedules: number
  readonly seconds: number
  readonly usEach: number
  readonly violations: number
  readonly bounds: readonly ProofBounds[]
  readonly scenarios: readonly { readonly scenario: string; readonly schedules: number }[]
  readonly mutants: readonly { readonly name: string; readonly schedules?: number | undefined }[]
}

/** All searches within the same bounds, one a scenario and encoding; those without bounds were at random. */
interface ProofBounds {
  readonly preemptions?: number
  readonly deaths?: number
  readonly searches: number
  readonly complete: number
  readonly schedules: number
}

/** A search of one scenario in one encoding. */
export interface ProofSearch {
  readonly scenario: string
  readonly preemptions?: number
  readonly deaths?: number
  readonly schedules: number
  readonly complete: boolean
}

/** What is kept of searches: their sums by bounds, and by scenario, from both ends and at random. */
export function searchesSummed(searches: readonly ProofSearch[]): Pick<ProofResults, 'bounds' | 'scenarios'> {
  const bounds = new Map<string, ProofBounds>()
  const scenarios = new Map<string, number>()
  for (const { scenario, preemptions, deaths, schedules, complete } of searches) {
    const key = `${preemptions} ${deaths}`
    const within = preemptions === undefined || deaths === undefined ? {} : { preemptions, deaths }
    const sum = bounds.get(key) ?? { ...within, searches: 0, complete: 0, schedules: 0 }
    const all = { searches: sum.searches + 1, complete: sum.complete + Number(complete), schedules: sum.schedules + schedules }
    bounds.set(key, { ...sum, ...all })
    const name = scenario.replace(/, (?:at random|last first)$/, '')
    scenarios.set(name, (scenarios.get(name) ?? 0) + schedules)
  }
  return { bounds: [...bounds.values()], scenarios: [...scenarios].map(([scenario, schedules]) => ({ scenario, schedules })) }
}

/** The parts of docs/proof.md that a run fills, by name. */
export function proofTables(results: ProofResults): ReadonlyMap<string, string> {
  return new Map([
    ['figures', figures(results)],
    ['mutants', caught(results)],
  ])
}

/** A page with its parts filled, each between `<!-- proof:name -->` and `<!-- /proof -->`. */
export function withTables(page: string, tables: ReadonlyMap<string, string>): string {
  return page.replace(/<!-- proof:(\S+) -->\n[\s\S]*?<!-- \/proof -->/g, (_, name: string) => {
    const table = tables.get(name)
    if (table === undefined) throw new Error(`nothing is known of "${name}"`)
    return `<!-- proof:${name} -->\n\n${table}\n\n<!-- /proof -->`
  })
}

function figures({ node, schedules, seconds, usEach, violations, bounds, scenarios }: ProofResults): string {
  const atRandom = bounds.find(({ preemptions }) => preemptions === undefined)
  const figures = `**${millions(schedules)} million schedules in ${seconds} s, ${usEach} microseconds each, ${violations} violations**`
  const lines = bounds
    .filter((each) => each !== atRandom)
    .map((each) => `| ${each.preemptions} | ${each.deaths} | ${each.searches} | ${each.complete} | ${millions(each.schedules)} |`)
  return [
    `One run on the build machine (2 shared cores, Node ${node}): ${figures}; ${scenarios.length} scenarios, ${atRandom?.searches} with their encodings.`,
    '',
    '| preemptions | stopped for good | searches | of them complete | million schedules |',
    '|---|---|---|---|---|',
    ...lines,
    `| any, at random | 0 or 1 | ${atRandom?.searches} | | ${millions(atRandom?.schedules ?? 0)} |`,
  ].join('\n')
}

/** How soon the planted faults of each kind were caught. */
function caught({ mutants: found }: ProofResults): string {
  const lines = KINDS.map(([kind, mutants]) => {
    const schedules = mutants.map(({ name }) => found.find((each) => each.name === name)?.schedules ?? Number.NaN).sort((a, b) => a - b)
    const most = schedules.at(-1) as number
    if (schedules.some(Number.isNaN)) return `| ${kind} | ${mutants.length} | not caught | |`
    return `| ${kind} | ${mutants.length} | ${schedules[Math.floor(schedules.length / 2)]} | ${most.toLocaleString('en')} |`
  })
  return ['| faults of | planted and caught | median schedules | most |', '|---|---|---|---|', ...lines].join('\n')
}

const KINDS: readonly (readonly [kind: string, mutants: readonly Mutant[]])[] = [
  ['the table, the loop, changes of policy (`table-mutants.ts`)', TABLE_MUTANTS],
  ['multi-word compare-and-swap (`table-mutants.ts`)', KCAS_MUTANTS],
  ['extensions (`mutants.ts`)', ENCODING_MUTANTS],
  ['growth, and new keys without room (`mutants.ts`)', GROWTH_MUTANTS],
  ['open work (`mutants.ts`)', HOLD_MUTANTS],
]

function millions(schedules: number): string {
  return (schedules / 1e6).toFixed(1)
}

const VERSION_AND_FORM = 9
const HALF = 2 ** 32
/** Places of the numbers of a saved bucket, see assembly/algorithms/saved-rate.ts. */
const TIME = 5
const DEBT = 6

/** The numbers of one key, as the core's host keeps them. */
export class SavedNumbers {
  private numbers: number[] = []
  private given: readonly number[] = []
  private at = 0

  begin(): void {
    this.numbers.length = 0
    this.at = 0
  }

  put(number: number): void {
    this.numbers.push(number)
  }

  next(): number {
    return this.given[this.at++] ?? Number.NaN
  }

  /** A bucket that owes `debt` units at `nowUs`. */
  give({ unitsPerUs, unitsPerToken, burst }: ExploredPolicy, nowUs: number, debt: number): void {
    this.given = [VERSION_AND_FORM, 0, unitsPerUs, unitsPerToken, burst * unitsPerToken, 2 * nowUs, 2 * debt, 0]
  }

  /** What the bucket that was saved owes at `nowUs`, in units of the policy that it was saved under. */
  debtAt(nowUs: number): number {
    const [, , unitsPerUs = 1] = this.numbers
    const folded = (this.numbers[DEBT] as number) + (this.numbers[DEBT + 1] as number) * HALF
    return Math.max(0, unfolded(folded) - (nowUs - unfolded(this.numbers[TIME] as number)) * unitsPerUs)
  }
}

function unfolded(folded: number): number {
  return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2
}
