import type { ChaosResults } from '../../../chaos/dist/chaos-results.js'
import { table } from '../markdown.js'
import { recoveriesOf } from './recoveries.js'

const HEAD = [
  ...['', '', 'takes', 'errors', 'slowest answer, ms', 'decided without the store', 'over', 'allowed'],
  ...['over, with the share', 'recovered, ms: median', 'most'],
]

/** Faults of PostgreSQL: each, exact and leased. */
export function postgresChaosMarkdown({ date, faults }: ChaosResults['postgres']): string {
  const rows = faults.flatMap(({ fault, allowedOver, subjects }) =>
    subjects.map((subject, i) => {
      const { name, takes, errors, slowestMs, outageDecisions, over, overWithShare } = subject
      const { median, most } = recoveriesOf(subject)
      const figures = [takes, errors, slowestMs, outageDecisions, over, allowedOver, overWithShare, median, most]
      return [i === 0 ? fault : '', name, ...figures.map(String)]
    }),
  )
  const [first] = faults
  const charges = faults.reduce((sum, each) => sum + each.charges, 0)
  const wrong = faults.reduce((sum, { chargedWrongly }) => sum + chargedWrongly, 0)
  const surely = Math.max(
    ...faults.flatMap(({ fault, subjects }) => (isForgetting(fault) ? [] : subjects.map(({ surelyOver }) => surelyOver))),
  )
  return [
    table(HEAD, rows),
    '',
    `- Each ${first?.times} times, ${date}. Where nothing is forgotten, ${surely} tokens were surely over.`,
    `- Of ${charges} charges of an account without refill ${wrong} were double or missing.`,
  ].join('\n')
}

/** Faults after which keys are full again, by statement. */
function isForgetting(fault: string): boolean {
  return fault === 'kill -9' || fault.includes('clock')
}
