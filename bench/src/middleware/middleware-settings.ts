import { FRAMEWORKS, type Framework, type MiddlewareSetting } from './middleware-setting.js'

const OPTIONS = ['same', 'defaults'] as const
const OUTCOMES = ['allow', 'deny'] as const

/** Where time is measured without a socket. */
export function addedSettings(frameworks: readonly Framework[] = FRAMEWORKS): MiddlewareSetting[] {
  return frameworks.flatMap((framework) => [
    ...everyOutcome(framework, ['one', 'many']),
    { framework, options: 'same', outcome: 'allow', clients: 'mapped' },
    { framework, options: 'same', outcome: 'allow', clients: 'ipv6' },
  ])
}

/** Where allocations are counted: who asks makes no difference there. */
export function allocationSettings(frameworks: readonly Framework[] = FRAMEWORKS): MiddlewareSetting[] {
  return frameworks.flatMap((framework) => everyOutcome(framework, ['one']))
}

/** Where requests come over sockets. The header of a proxy distinguishes many clients: there they share its connections. */
export function socketSettings(frameworks: readonly Framework[] = FRAMEWORKS): MiddlewareSetting[] {
  return frameworks.flatMap((framework) => [
    ...everyOutcome(framework, ['one']),
    { framework, options: 'same', outcome: 'allow', clients: 'many' },
  ])
}

function everyOutcome(framework: Framework, clients: readonly MiddlewareSetting['clients'][]): MiddlewareSetting[] {
  return OUTCOMES.flatMap((outcome) =>
    OPTIONS.flatMap((options) => clients.map((each): MiddlewareSetting => ({ framework, options, outcome, clients: each }))),
  )
}
