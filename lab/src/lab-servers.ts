import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from 'sluicegate-testkit'
import { LabProcess } from './lab-process.js'
import type { ServiceNode } from './service-node.js'

/**
 * haproxy before the nodes; a node that is not ready gets no requests. A node that ended or drains fails its next check at once. Without
 * `timeout check` a node that answers later than the interval fails it too: on a busy machine all nodes were taken for failed, and haproxy
 * answered 503 itself.
 *
 * @param isAffine whether requests with the same key go to the same node, by consistent hashing, in place of round robin.
 */
export async function startBalancer(
  port: number,
  nodes: readonly ServiceNode[],
  folder: string,
  { isAffine = false } = {},
): Promise<LabProcess> {
  const file = join(folder, `haproxy-${port}.cfg`)
  const servers = nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port}`)
  writeFileSync(
    file,
    `global
  maxconn 4096
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 10s
  timeout check 5s
  option redispatch
  retries 3
frontend lab
  bind 127.0.0.1:${port}
  default_backend nodes
backend nodes
  ${isAffine ? 'balance url_param key\n  hash-type consistent' : 'balance roundrobin'}
  option httpchk GET /readyz
  default-server check inter 200ms fall 1 rise 1
${servers.join('\n')}
`,
  )
  const balancer = new LabProcess('haproxy', ['-f', file, '-db'])
  await until('the load balancer passes requests on', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
    return response?.status === 200
  })
  return balancer
}

/** Prometheus that scrapes the nodes each second. */
export async function startPrometheus(port: number, nodes: readonly ServiceNode[], folder: string): Promise<LabProcess> {
  const file = join(folder, 'prometheus.yaml')
  const targets = nodes.map((node) => `127.0.0.1:${node.port}`)
  const config = { global: { scrape_interval: '1s' }, scrape_configs: [{ job_name: 'sluicegate', static_configs: [{ targets }] }] }
  writeFileSync(file, JSON.stringify(config))
  const data = `--storage.tsdb.path=${join(folder, 'prometheus')}`
  const prometheus = new LabProcess('prometheus', [`--config.file=${file}`, data, `--web.listen-address=127.0.0.1:${port}`])
  await until('Prometheus answers', async () => (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined))?.status === 200)
  return prometheus
}
