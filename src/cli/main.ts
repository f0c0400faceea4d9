#!/usr/bin/env node
/** Where the process `admb` starts. */
import { runProgram } from './program.js'

/** The reader of the output (such as `| head`) has closed it. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

const exitCode = await runProgram(process.argv.slice(2))
if (exitCode !== 0) process.exitCode = exitCode
// libp2p leaves timers of about a second behind. Only the output has to be flushed.
process.stdout.write('', () => process.exit())
