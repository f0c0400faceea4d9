/** Mutation test: the defects of `defects.txt`, and peers that cannot be dialled without the mechanisms of `reachability.txt`. */
import { describeMutants } from '../../support/mutants.js'

describeMutants('defects')
describeMutants('reachability')
