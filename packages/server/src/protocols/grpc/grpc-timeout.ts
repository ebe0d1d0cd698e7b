const MS_BY_UNIT: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** Milliseconds of a header `grpc-timeout`: at most 8 digits and a unit, for example `20m`. Undefined for anything else. */
export function grpcTimeoutMs(header: unknown): number | undefined {
  if (typeof header !== 'string') return undefined
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? []
  return digits === undefined || unit === undefined ? undefined : Number(digits) * (MS_BY_UNIT[unit] as number)
}
