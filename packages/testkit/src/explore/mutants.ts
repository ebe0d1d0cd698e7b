import { ENCODING_MUTANTS } from './encoding-mutants.js'
import { GROWTH_MUTANTS } from './growth-mutants.js'
import { KCAS_MUTANTS } from './kcas-mutants.js'
import type { Mutant } from './mutant.js'
import { TABLE_MUTANTS } from './table-mutants.js'

/** Every fault that the explorer has to find. */
export const MUTANTS: readonly Mutant[] = [...TABLE_MUTANTS, ...KCAS_MUTANTS, ...ENCODING_MUTANTS, ...GROWTH_MUTANTS]
