/** Where the process `admb` starts. */
import { explain, OutputError } from './errors.js'
import { runProgram } from './program.js'

// Output that is lost is a failure. A reader that has closed it, such as `| head`, needs no message.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (stream === process.stdout && error.code !== 'EPIPE') {
      process.stderr.write(`admb: ${explain(new OutputError(error)).line}\n`)
    }
    process.exit(1)
  })
}

void runProgram(process.argv.slice(2)).then(exitCode => {
  if (exitCode !== 0) process.exitCode = exitCode
  // libp2p leaves timers of about a second behind. Only the output has to be flushed; an error is reported above.
  process.stdout.write('', error => error || process.exit())
})
