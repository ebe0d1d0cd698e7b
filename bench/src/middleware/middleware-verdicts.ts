import type { Verdict } from '../question.js'
import { addedRatio } from './middleware-figures.js'
import { type MiddlewareResults, runsOf } from './middleware-results.js'
import { type MiddlewareSetting, settingName } from './middleware-setting.js'

const JUDGED: readonly MiddlewareSetting[] = (['same', 'defaults'] as const).flatMap((options) =>
  (['one', 'many'] as const).map((clients): MiddlewareSetting => ({ framework: 'express', options, outcome: 'allow', clients })),
)

/** The targets, each by the median of ratios within a run, as far as they were measured. */
export function middlewareVerdicts({ added }: MiddlewareResults): Verdict[] {
  return JUDGED.flatMap((setting): Verdict[] => {
    const runs = runsOf(added, setting)
    if (runs.length === 0) return []
    const measured = addedRatio(runs, ({ ns }) => ns)
    const what = `Express, time added, of that of express-rate-limit, ${settingName(setting)}`
    return [{ what, target: '<= 1/3', measured, unit: 'x', met: measured.median <= 1 / 3 }]
  })
}
