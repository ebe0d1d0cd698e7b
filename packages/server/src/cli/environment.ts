/** Environment variables of the service, by what they set. Options of the command line win over them, and they over the file. */
export const ENVIRONMENT = {
  config: 'SLUICEGATE_CONFIG',
  http: 'SLUICEGATE_HTTP',
  grpc: 'SLUICEGATE_GRPC',
  resp: 'SLUICEGATE_RESP',
  admin: 'SLUICEGATE_ADMIN',
  redis: 'SLUICEGATE_REDIS',
  tlsCert: 'SLUICEGATE_TLS_CERT',
  tlsKey: 'SLUICEGATE_TLS_KEY',
  tlsClientCa: 'SLUICEGATE_TLS_CLIENT_CA',
  drain: 'SLUICEGATE_DRAIN',
  maxConnections: 'SLUICEGATE_MAX_CONNECTIONS',
  processes: 'SLUICEGATE_PROCESSES',
  threads: 'SLUICEGATE_THREADS',
  snapshot: 'SLUICEGATE_SNAPSHOT',
  candidate: 'SLUICEGATE_CANDIDATE',
  logLevel: 'SLUICEGATE_LOG_LEVEL',
  url: 'SLUICEGATE_URL',
  /** A token of scope decide. */
  token: 'SLUICEGATE_TOKEN',
  /** A token of scope admin. Secrets have no option: other users of a machine can read command lines. */
  adminToken: 'SLUICEGATE_ADMIN_TOKEN',
} as const
