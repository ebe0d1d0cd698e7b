import { hasBurst, type RatePolicy } from './decide.js'

/** A policy as the reader would write it, in one of three languages. */
export interface Snippet {
  readonly name: string
  readonly text: string
}

/** How each policy is written: in a program, in the service's configuration, in a file of Envoy's ratelimit service. */
export function policyCode(rates: readonly RatePolicy[]): Snippet[] {
  return [
    { name: 'TypeScript', text: typeScript(rates) },
    { name: 'Service, YAML', text: serviceYaml(rates) },
    { name: 'Envoy, YAML', text: envoyYaml(rates) },
  ]
}

/** The function of a policy: `token-bucket` is `tokenBucket`. */
export function makerOf({ algorithm }: RatePolicy): string {
  return algorithm.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

function typeScript(rates: readonly RatePolicy[]): string {
  const makers = [...new Set(rates.map(makerOf))].sort()
  const policies = rates.map((rate, i) => {
    const burst = hasBurst(rate) ? `, burst: ${rate.burst}` : ''
    return `const ${nameOf(rates, i)} = createLimiter(${makerOf(rate)}({ limit: ${rate.limit}, window: '${rate.window}'${burst} }))`
  })
  return [
    `import { createLimiter, ${makers.join(', ')} } from 'sluicegate'`,
    '',
    ...policies,
    '',
    `const { allowed, remaining, retryAfterMs } = ${nameOf(rates, 0)}.take('user:ada')`,
    '',
  ].join('\n')
}

function serviceYaml(rates: readonly RatePolicy[]): string {
  const policies = rates.map((rate, i) => `  ${nameOf(rates, i)}: { ${optionsOf(rate, 'limit').join(', ')} }`)
  return ['# sluicegate serve --config gate.yaml', 'policies:', ...policies, ''].join('\n')
}

function envoyYaml(rates: readonly RatePolicy[]): string {
  const descriptors = rates.flatMap((rate, i) => [
    `  - key: ${rates.length === 1 ? 'user' : `user_${i + 1}`}`,
    `    rate_limit: { ${optionsOf(rate, 'requests_per_unit').join(', ')} }`,
  ])
  return ['# sluicegate serve --config rules.yaml --grpc 127.0.0.1:8081', 'domain: edge', 'descriptors:', ...descriptors, ''].join('\n')
}

function optionsOf(rate: RatePolicy, limit: string): string[] {
  const options = [`algorithm: ${rate.algorithm}`, `${limit}: ${rate.limit}`, `window: ${rate.window}`]
  return hasBurst(rate) ? [...options, `burst: ${rate.burst}`] : options
}

function nameOf(rates: readonly RatePolicy[], i: number): string {
  return rates.length === 1 ? 'limiter' : (['first', 'second'][i] ?? 'other')
}
