import type { LetThroughFindings } from './let-through.js'
import type { StudyTable } from './study-table.js'

export function letThroughTables({ limit, windowMs, askedMs, policies }: LetThroughFindings): StudyTable[] {
  return [
    {
      name: 'let-through',
      title: `${limit} in ${windowMs / 1000} s: what each policy lets through of the same ${askedMs.length} requests`,
      head: ['', 'passed', 'most in any window'],
      rows: policies.map(({ name, admittedMs, mostInAnyWindow }) => [name, String(admittedMs.length), String(mostInAnyWindow)]),
    },
  ]
}
