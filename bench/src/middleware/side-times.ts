import { summaryOf } from '../samples.js'
import { SIDES, type Side } from './middleware-setting.js'

/**
 * What each side takes, out of blocks that ran in turn: that of `unlimited` by its median, and the others by the median of their ratios to the
 * block of `unlimited` beside them. How fast a virtual machine is changes from second to second, and both blocks of a ratio share it.
 *
 * @param blocks what each took, the same in number.
 */
export function sideTimes(blocks: Readonly<Record<Side, readonly number[]>>): Record<Side, number> {
  const alone = summaryOf(blocks.unlimited).median
  const [unlimited, sluicegate, rival] = SIDES.map((side) => {
    const ratios = blocks[side].map((took, block) => took / (blocks.unlimited[block] as number))
    return alone * summaryOf(ratios).median
  }) as [number, number, number]
  return { unlimited, sluicegate, rival }
}
