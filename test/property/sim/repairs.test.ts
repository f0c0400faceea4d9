/**
 * Mutation test: each extension that ADMB needs on real networks is disabled in turn, and the fuzzer must find a violation. This
 * shows that the checkers can fail, and that every extension is needed.
 */
import { extensions } from '../../support/admb-mutants.js'
import { describeMutants } from '../../support/mutants.js'

describeMutants('extensions of ADMB', extensions)
