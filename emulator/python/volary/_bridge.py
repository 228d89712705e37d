"""Passes what volary asks on to the process that serves a policy on a Unix socket, and its answers back."""

import socket
import sys


def main() -> None:
    """Copies lines between standard input and output and the socket that is the first argument."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        answers = server.makefile("rb")
        for line in sys.stdin.buffer:
            server.sendall(line)
            answer = answers.readline()
            if not answer:
                sys.exit("the policy ended in the process that called volary.run; its traceback is there")
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
