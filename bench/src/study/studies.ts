import { estimatePlot } from './estimate-plot.js'
import { letThroughStudy } from './let-through.js'
import { letThroughPlot } from './let-through-plot.js'
import { letThroughTables } from './let-through-tables.js'
import { slidingWindowStudy } from './sliding-window.js'
import { slidingWindowTables } from './sliding-window-tables.js'
import type { Study } from './study.js'

const slidingWindow: Study<ReturnType<typeof slidingWindowStudy>> = {
  find: slidingWindowStudy,
  tables: slidingWindowTables,
  plot: estimatePlot,
  plotName: 'sliding-window-estimate',
}

const letThrough: Study<ReturnType<typeof letThroughStudy>> = {
  find: letThroughStudy,
  tables: letThroughTables,
  plot: letThroughPlot,
  plotName: 'let-through',
}

/** By the name that `--study` and a file of results give. */
export const STUDIES: ReadonlyMap<string, Study> = new Map<string, Study>([
  ['sliding-window', slidingWindow as Study],
  ['let-through', letThrough as Study],
])
