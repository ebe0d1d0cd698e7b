import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { filledPage } from 'sluicegate-testkit/markdown-tables.js'
import type { Summary } from 'sluicegate-testkit/samples.js'
import type { Machine } from './machine.js'
import { figure, spread, type Table, tableMarkdown, tableText } from './table.js'

/** What a run has to say: in the terminal all tables, in pages those that have a place there. */
export interface Report {
  /** Paths in `docs`. */
  readonly pages: readonly string[]
  readonly tables: readonly Table[]
  /** Parts of pages that are no tables, by the names of their places. */
  readonly texts?: Readonly<Record<string, string>>
  /** Plots as SVG, by the names of their files. */
  readonly plots?: Readonly<Record<string, () => string>>
}

/** A page with what the report has for its places. Tables of one name stand below each other. */
export function pageWith(page: string, { tables, texts = {} }: Report): string {
  const parts = new Map(Object.entries(texts))
  for (const table of tables.filter(isFilled))
    parts.set(table.name, [...(parts.has(table.name) ? [parts.get(table.name)] : []), tableMarkdown(table)].join('\n\n'))
  return filledPage(page, 'bench', parts, true)
}

function isFilled({ rows }: Table): boolean {
  return rows.length > 0
}

export function printReport({ tables }: Report): void {
  for (const table of tables.filter(isFilled)) console.log(tableText(table))
}

export function writeResults(file: string, results: object): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(results)}\n`)
  console.log(`\nwritten to ${file}`)
}

/** A target with what was measured, judged. */
export interface Claim {
  readonly what: string
  /** Such as `<= 3 ms`. */
  readonly target: string
  readonly measured: Summary
  readonly unit: string
  /** By the median. */
  readonly met: boolean
}

/** Judges what was measured by a target such as `<= 3 ms`, `>= 80 %`, or `<= 1/3` of ratios. */
export function claim(what: string, measured: Summary, target: string, unit = target.split(' ')[2] ?? 'x'): Claim {
  const [, sign, bound, under = 1] = /^([<>]=) ([\d.]+)(?:\/(\d+))?/.exec(target) ?? []
  const limit = Number(bound) / Number(under)
  return { what, target, measured, unit, met: sign === '<=' ? measured.median <= limit : measured.median >= limit }
}

/** Each target with what was measured, and whether that is enough; targets that differ in their last part alone share a row. */
export function claimsTable(name: string, claims: readonly Claim[]): Table {
  const groups = new Map<string, Claim[]>()
  for (const each of claims) {
    const group = `${each.what.slice(0, each.what.lastIndexOf(', '))}, ${each.target}`
    groups.set(group, [...(groups.get(group) ?? []), each])
  }
  const rows = [...groups.values()].map((group) => {
    const [{ what = '', target = '', unit = '' } = {}] = group
    const base = what.slice(0, what.lastIndexOf(', ') + 2)
    const results = group.map(({ met }) => (met ? 'met' : '**missed**'))
    return [
      group.length === 1 ? what : `${base}${joined(group.map((each) => each.what.slice(base.length)))}`,
      target.replace('<=', '≤').replace('>=', '≥'),
      `${group.map(({ measured }) => figure(measured.median)).join('/')} ${unit === 'x' ? '×' : unit}`,
      group.map(({ measured }) => spread(measured)).join('/'),
      new Set(results).size === 1 ? (results[0] ?? '') : results.join('/'),
    ]
  })
  return { name, head: ['what', 'target', 'measured', 'quartiles', ''], rows }
}

/** `16/64 connections` of `16 connections` and `64 connections`. */
function joined(texts: readonly string[]): string {
  const ends = new Set(texts.map((text) => text.replace(/^\S+/, '')))
  const [end = ''] = ends
  return ends.size === 1 ? `${texts.map((text) => text.slice(0, text.length - end.length)).join('/')}${end}` : texts.join('/')
}

interface MeasuredOn {
  readonly machine: Machine
  readonly loadBefore: number
  readonly loadAfter: number
}

/** Where and when a run took place; `rows` are what is particular to it, `shared` says who shares the processor. */
export function machineTable(
  name: string,
  { machine, loadBefore, loadAfter }: MeasuredOn,
  rows: Readonly<Record<string, string>>,
  shared = '',
): Table {
  const facts = {
    processor: `${machine.cpu}, ${machine.cores} cores (virtual), ${machine.memoryGiB} GiB${shared}`,
    system: `${machine.os}, ${machine.kernel}`,
    Node: machine.node,
    ...rows,
    'load average': `${loadBefore} before, ${loadAfter} after`,
  }
  return { name, head: ['', ''], rows: Object.entries(facts) }
}
