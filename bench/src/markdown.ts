import type { Answer, Verdict } from './question.js'
import { answerRows, figure, spread } from './report.js'
import type { Results } from './results.js'

/** Those in JavaScript that are asked in the process. */
const RIVALS = ['express-rate-limit', 'limiter', 'rate-limiter-flexible']

/** The parts of the document that come out of a run, by the names of their places in it. */
export function markdownParts(results: Results): ReadonlyMap<string, string> {
  const parts = new Map([
    ['machine', machineTable(results)],
    ['targets', targetsTable(results.answers.flatMap(({ verdicts }) => verdicts))],
  ])
  for (const answer of results.answers) {
    const { question } = answer
    parts.set(question, [...(parts.has(question) ? [parts.get(question) as string, ''] : []), answerTable(answer)].join('\n'))
  }
  return parts
}

/** The document with each place `<!-- bench:NAME -->` ... `<!-- /bench -->` filled anew. */
export function filled(document: string, parts: ReadonlyMap<string, string>): string {
  return document.replace(/(<!-- bench:([\w-]+) -->)[\s\S]*?(<!-- \/bench -->)/g, (place, open: string, name: string, close: string) => {
    const part = parts.get(name)
    return part === undefined ? place : `${open}\n\n${part}\n\n${close}`
  })
}

function machineTable({ startedAt, machine, rivals, effort, loadBefore, loadAfter }: Results): string {
  return table(
    ['', ''],
    [
      ['processor', `${machine.cpu}, ${machine.cores} cores (virtual), ${machine.memoryGiB} GiB`],
      ['system', `${machine.os}, ${machine.kernel}`],
      ['Node', machine.node],
      ['Go', machine.go],
      ['rivals', RIVALS.map((name) => `${name} ${rivals[name]}`).join(', ')],
      [
        'run',
        `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${effort.rounds} repeats of ${effort.repeatMs} ms in ${effort.lives} processes each`,
      ],
      ['load average', `${loadBefore} before, ${loadAfter} after`],
    ],
  )
}

/** Each target with what was measured, and whether that is enough. */
export function targetsTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ what, target, measured, unit, met }) => [
    what,
    target.replace('<=', '≤').replace('>=', '≥'),
    `${figure(measured.median)} ${unit === 'x' ? '×' : unit}`,
    spread(measured),
    met ? 'met' : '**missed**',
  ])
  return table(['what', 'target', 'measured', 'quartiles', ''], rows)
}

function answerTable(answer: Answer): string {
  const [head, ...rows] = answerRows(answer, `median, ${answer.unit}`)
  return [`**${answer.title}.** ${answer.note}`, '', table(head, rows)].join('\n')
}

/** A table; figures to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, column) => (column === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}
