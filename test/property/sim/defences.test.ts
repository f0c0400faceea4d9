/** Mutation test: each defence against hostile nodes, in `defences.txt`, is disabled in turn. */
import { describeMutants } from '../../support/mutants.js'

describeMutants('defences')
