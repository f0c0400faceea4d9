/** Mutation test: each mechanism of `repairs.txt` is disabled in turn, and the fuzzer must find a violation. */
import { describeMutants } from '../../support/mutants.js'

describeMutants('repairs')
