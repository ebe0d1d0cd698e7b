import type { RequestListener } from 'node:http'

/** Frameworks for which there is an adapter of ours, and the middleware that most people limit with there. */
export const RIVALS = {
  express: 'express-rate-limit',
  fastify: '@fastify/rate-limit',
  hono: 'hono-rate-limiter',
  koa: 'koa-ratelimit',
} as const

export type Framework = keyof typeof RIVALS
export const FRAMEWORKS = Object.keys(RIVALS) as readonly Framework[]

/** The limiter in front of the handler, if any. */
export const SIDES = ['unlimited', 'sluicegate', 'rival'] as const
export type Side = (typeof SIDES)[number]

/** What is measured side by side: all of this is the same for each side. */
export interface MiddlewareSetting {
  readonly framework: Framework
  /** `defaults`: each side gets nothing but the limit. `same`: both count in fixed windows and write the same headers. */
  readonly options: 'defaults' | 'same'
  /** What becomes of every request. */
  readonly outcome: 'allow' | 'deny'
  /** Who asks: one IPv4 address, 10,000 of them in random order, one as sockets of both families tell it, or one IPv6 address. */
  readonly clients: 'one' | 'many' | 'mapped' | 'ipv6'
}

const CLIENTS: Readonly<Record<MiddlewareSetting['clients'], string>> = {
  one: 'one address',
  many: '10,000 addresses',
  mapped: 'one mapped address',
  ipv6: 'one IPv6 address',
}

/** The setting as the name of a row; the same headers are not mentioned. */
export function settingName({ options, outcome, clients }: MiddlewareSetting): string {
  return `${outcome}, ${options === 'same' ? '' : 'defaults, '}${CLIENTS[clients]}`
}

/** A side, as tables say it. */
export function sideName(side: Side, framework: Framework): string {
  return side === 'rival' ? RIVALS[framework] : side
}

export function isSameSetting(a: MiddlewareSetting, b: MiddlewareSetting): boolean {
  return a.framework === b.framework && a.options === b.options && a.outcome === b.outcome && a.clients === b.clients
}

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

/** What an app is to be like. */
export interface SitePlan extends Pick<MiddlewareSetting, 'options' | 'outcome'> {
  readonly side: Side
  /** Whether clients are known by the header that a proxy of one's own writes, and not by their socket. */
  readonly behindProxy: boolean
}

/** An app with one route, which answers `ok`, and in front of it the limiter. */
export type SiteMaker = (plan: SitePlan) => Promise<RequestListener>
