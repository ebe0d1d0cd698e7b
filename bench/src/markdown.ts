import { markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import type { Answer, Verdict } from './question.js'
import type { Results } from './report.js'
import { aligned, answerRows, figure, spread } from './report.js'

type MeasuredOn = Pick<Results, 'machine' | 'loadBefore' | 'loadAfter'>

/** Those in JavaScript that are asked in the process. */
const RIVALS = ['express-rate-limit', 'limiter', 'rate-limiter-flexible']

/** The parts of the document that come out of a run, by the names of their places in it. */
export function markdownParts(results: Results): ReadonlyMap<string, string> {
  const parts = new Map([
    ['machine', machineTable(results, machineRows(results))],
    ['targets', targetsTable(results.answers.flatMap(({ verdicts }) => verdicts))],
  ])
  for (const question of new Set(results.answers.map((answer) => answer.question))) {
    const answers = results.answers.filter((answer) => answer.question === question)
    parts.set(question, pairedTable(answers) ?? answers.map(answerTable).join('\n\n'))
  }
  return parts
}

/**
 * Answers whose subjects are all pairs, such as `gcra: allow` and `gcra: deny`, in one table: a row for each pair, a column for each answer, both
 * medians in a cell. Spreads stay in the results.
 */
function pairedTable(answers: readonly Answer[]): string | undefined {
  const subjects = new Set(answers.flatMap(({ measurements }) => measurements.map(({ subject }) => subject)))
  const pairs = new Map([...subjects].map((subject) => [subject, pairOf(subject)]))
  if ([...pairs.values()].includes(undefined)) return undefined
  const named = [...pairs.values()] as { row: string; side: string }[]
  const [rows, sides] = [new Set(named.map(({ row }) => row)), new Set(named.map(({ side }) => side))]
  if (sides.size !== 2) return undefined
  const medianOf = ({ measurements }: Answer, row: string, side: string): string => {
    const found = measurements.find(({ subject }) => pairs.get(subject)?.row === row && pairs.get(subject)?.side === side)
    return found === undefined ? '' : figure(found.ns.median)
  }
  const cells = [...rows].map((row) => [
    row,
    ...answers.map((answer) =>
      [...sides]
        .map((side) => medianOf(answer, row, side))
        .filter(Boolean)
        .join('/'),
    ),
  ])
  const title = `**Medians, ${answers[0]?.unit}: ${[...sides].join('/')}.**`
  return [title, '', table(['', ...answers.map((answer) => columnOf(answer))], cells)].join('\n')
}

function pairOf(subject: string): { readonly row: string; readonly side: string } | undefined {
  const [, row, side] = /^(.*): ([^:]*)$/.exec(subject) ?? []
  return row === undefined || side === undefined ? undefined : { row, side }
}

function columnOf({ title }: Answer): string {
  return title.replace(/^Each algorithm,? |\.$/g, '')
}

/** The document with each place `<!-- bench:NAME -->` ... `<!-- /bench -->` filled; after `bench-inline:` the part stands in its line. */
export function filled(document: string, parts: ReadonlyMap<string, string>): string {
  return document.replace(
    /(<!-- bench(-inline)?:([\w-]+) -->)[\s\S]*?(<!-- \/bench -->)/g,
    (place, open: string, inline: string | undefined, name: string, close: string) => {
      const part = parts.get(name)
      if (part === undefined) return place
      return inline === undefined ? `${open}\n\n${part}\n\n${close}` : `${open}${part}${close}`
    },
  )
}

function machineRows({ startedAt, machine, rivals, effort }: Results): string[][] {
  return [
    ['Go', machine.go],
    ['rivals', RIVALS.map((name) => `${name} ${rivals[name]}`).join(', ')],
    ['run', `${minuteOf(startedAt)}, ${effort.rounds} repeats of ${effort.repeatMs} ms in ${effort.lives} processes each`],
  ]
}

/** Where and when a run took place; `rows` are what is particular to it, `shared` says who shares the processor. */
export function machineTable({ machine, loadBefore, loadAfter }: MeasuredOn, rows: readonly string[][], shared = ''): string {
  return table(
    ['', ''],
    [
      ['processor', `${machine.cpu}, ${machine.cores} cores (virtual), ${machine.memoryGiB} GiB${shared}`],
      ['system', `${machine.os}, ${machine.kernel}`],
      ['Node', machine.node],
      ...rows,
      ['load average', `${loadBefore} before, ${loadAfter} after`],
    ],
  )
}

/** The minute of a time in ISO 8601, as tables write it. */
export function minuteOf(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`
}

/** Each target with what was measured, and whether that is enough; targets that differ in their last part alone share a row. */
export function targetsTable(verdicts: readonly Verdict[]): string {
  const groups = new Map<string, Verdict[]>()
  for (const verdict of verdicts) {
    const group = `${verdict.what.slice(0, verdict.what.lastIndexOf(', '))}, ${verdict.target}`
    groups.set(group, [...(groups.get(group) ?? []), verdict])
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
  return table(['what', 'target', 'measured', 'quartiles', ''], rows)
}

/** `16/64 connections` of `16 connections` and `64 connections`. */
function joined(texts: readonly string[]): string {
  const ends = new Set(texts.map((text) => text.replace(/^\S+/, '')))
  const [end = ''] = ends
  return ends.size === 1 ? `${texts.map((text) => text.slice(0, text.length - end.length)).join('/')}${end}` : texts.join('/')
}

function answerTable(answer: Answer): string {
  const [head, ...rows] = answerRows(answer, `median, ${answer.unit}`)
  return [`**${answer.title}.** ${answer.note}`, '', table(head, rows)].join('\n')
}

/** A table; figures to the right. A unit that all figures of a column have stands in its head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const units = head.map((name, column) => (name === '' || column === 0 ? undefined : unitOf(rows.map((row) => row[column] ?? ''))))
  const names = head.map((name, column) => (units[column] === undefined ? name : `${name}, ${units[column]}`))
  const cells = rows.map((row) => row.map((cell, column) => (units[column] === undefined ? cell : cell.replace(` ${units[column]}`, ''))))
  return markdownTable(names, cells, true)
}

function unitOf(cells: readonly string[]): string | undefined {
  const units = new Set(cells.filter((cell) => cell !== '' && cell !== '0').map((cell) => /^-?[\d.,]+ (%|×|ns|µs|ms|MB)$/.exec(cell)?.[1]))
  return units.size === 1 ? [...units][0] : undefined
}

/** A table of a report, under the name of its place in the page. */
export interface Table {
  readonly name: string
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export function tableText({ title, head, rows }: Table): string {
  return [title, '', ...aligned([head, ...rows]), ''].join('\n')
}

export function tableMarkdown({ title, head, rows }: Table): string {
  return [`**${title}**`, '', table(head, rows)].join('\n')
}
