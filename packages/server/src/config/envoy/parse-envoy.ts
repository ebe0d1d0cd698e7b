import { parseYaml } from '../parse-yaml.js'
import type { EnvoyDomain } from './envoy-domain.js'
import { readEnvoy } from './read-envoy.js'

/**
 * The rules of one domain in `text`, a file of Envoy's ratelimit service; `file` is its name in messages.
 *
 * @param names names of policies in other files, to which those of this one are added.
 * @throws {ConfigError} with every fault that was found, each with its line and column.
 */
export function parseEnvoy(text: string, file = 'config', names?: Set<string>): EnvoyDomain {
  return parseYaml(text, file, (root) => readEnvoy(root, names))
}
