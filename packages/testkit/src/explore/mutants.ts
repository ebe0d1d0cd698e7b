import { FORM_MUTANTS } from './form-mutants.js'
import { GROWTH_MUTANTS } from './growth-mutants.js'
import type { Mutant } from './mutant.js'
import { SEVERAL_MUTANTS } from './several-mutants.js'
import { TABLE_MUTANTS } from './table-mutants.js'

/** Every fault that the explorer has to find. */
export const MUTANTS: readonly Mutant[] = [...TABLE_MUTANTS, ...SEVERAL_MUTANTS, ...FORM_MUTANTS, ...GROWTH_MUTANTS]
