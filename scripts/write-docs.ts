/** `npm run docs`: writes the pages that follow from tables in the sources. */
import { writeFileSync } from 'node:fs'
import { optionsPage } from '../src/cli/options/reference.js'
import { simRows } from '../src/cli/sim/options.js'
import { featuresPage } from '../src/learning/index.js'
import { statusPage } from './docs/status-page.js'

writeFileSync('docs/reference/options.md', optionsPage(simRows))
writeFileSync('docs/reference/combinations.md', featuresPage())
writeFileSync('docs/reference/status.md', await statusPage())
