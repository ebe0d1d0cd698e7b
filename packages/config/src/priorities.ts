import type { Section } from './section.js'
import { didYouMean } from './spelling.js'

/** Classes of requests of a policy, which are denied one after another when it runs short. */
export interface Priorities {
  /** The part of the budget, 0 to below 1, that a class leaves to the classes above it, by name. */
  readonly reserved: ReadonlyMap<string, number>
  /** The class of requests that name none, or an unknown one. */
  readonly default: string
  /** The highest class that a request may name, where its token does not say another. */
  readonly max: string
}

export const MAX_CLASSES = 16
const NAME = /^[\w.-]{1,64}$/
const SHARE = /^(\d{1,2}(?:\.\d{1,2})?)%$/

/** The names of the options in one of the two forms of files. */
export interface PriorityOptions {
  readonly default: 'default-priority' | 'default_priority'
  readonly max: 'max-priority' | 'max_priority'
}

export const PRIORITY_OPTIONS: PriorityOptions = { default: 'default-priority', max: 'max-priority' }
export const ENVOY_PRIORITY_OPTIONS: PriorityOptions = { default: 'default_priority', max: 'max_priority' }

/** The option `priorities` of a policy, with those that belong to it; undefined without it. */
export function readPriorities(section: Section, options: PriorityOptions): Priorities | undefined {
  const written = [section.label(options.default, 'standard'), section.label(options.max, 'critical')]
  if (!section.has('priorities')) {
    for (const option of [options.default, options.max]) if (section.has(option)) section.nameFault(option, 'needs priorities')
    return undefined
  }
  const classes = section.section('priorities')
  const reserved = new Map<string, number>()
  for (const name of classes.names()) {
    if (!NAME.test(name)) classes.nameFault(name, 'must be 1 to 64 letters, digits, dots, dashes and underscores')
    const share = SHARE.exec(classes.text(name, '40%') ?? '0%')?.[1]
    if (share === undefined) classes.fault(name, 'must be the part of the budget that is kept from the class, from 0% to 99.99%')
    else reserved.set(name, Number(share) / 100)
  }
  if (classes.isMapping && (classes.names().length < 2 || classes.names().length > MAX_CLASSES))
    section.fault('priorities', `must have 2 to ${MAX_CLASSES} classes, for example { critical: 0%, standard: 20%, sheddable: 40% }`)
  const known = (option: string, name: string | undefined): string | undefined => {
    if (name === undefined || reserved.has(name)) return name
    section.fault(option, `${JSON.stringify(name.slice(0, 60))} is not among the priorities${didYouMean(name, reserved.keys())}`)
    return undefined
  }
  const usual = known(options.default, written[0]) ?? (reserved.has('default') ? 'default' : lowestOf(reserved))
  return { reserved, default: usual, max: known(options.max, written[1]) ?? usual }
}

/** The class that is denied first, so that a request gains nothing by naming none. */
function lowestOf(reserved: ReadonlyMap<string, number>): string {
  let lowest = ''
  for (const [name, share] of reserved) if (lowest === '' || share > (reserved.get(lowest) ?? 0)) lowest = name
  return lowest
}
