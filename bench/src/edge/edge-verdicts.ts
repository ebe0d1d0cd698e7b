import type { Verdict } from '../question.js'
import { addedRatio } from './edge-figures.js'
import { type EdgeResults, runsOf } from './edge-results.js'
import { type EdgeSetting, settingName } from './edge-setting.js'

const JUDGED: readonly EdgeSetting[] = (['same', 'defaults'] as const).flatMap((options) =>
  (['one', 'many'] as const).map((clients): EdgeSetting => ({ framework: 'express', options, outcome: 'allow', clients })),
)

/** The targets, each by the median of ratios within a run, as far as they were measured. */
export function edgeVerdicts({ added }: EdgeResults): Verdict[] {
  return JUDGED.flatMap((setting): Verdict[] => {
    const runs = runsOf(added, setting)
    if (runs.length === 0) return []
    const measured = addedRatio(runs, ({ ns }) => ns)
    const what = `Express, added time a request, ${settingName(setting)}: sluicegate / express-rate-limit`
    return [{ what, target: '<= 1/3', measured, unit: 'x', met: measured.median <= 1 / 3 }]
  })
}
