import { parseYaml } from '../parse-yaml.js'
import type { EnvoyDomain } from './envoy-domain.js'
import { EnvoyFiles } from './envoy-files.js'

/**
 * The rules in `text`, a configuration file of Envoy's ratelimit service; `file` is its name in messages.
 *
 * @throws {ConfigError} with every fault that was found, each with its line and column.
 */
export function parseEnvoy(text: string, file = 'config', files = new EnvoyFiles()): readonly EnvoyDomain[] {
  parseYaml(text, file, (root) => files.read(root, file))
  return files.domains
}
