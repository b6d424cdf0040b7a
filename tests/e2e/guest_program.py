"""Stands for any program in tests of `lockstep guest`: trains nothing, but prints figures, talks to its peers, hangs,
dies, or leaves processes behind.
usage: guest_program.py BEHAVIOUR [--epochs N] [--batch N] [--csv FILE] [--note FILE]"""

import argparse
import json
import os
import signal
import socket
import sys
import time

BYTES = 1 << 20


def leave_daemon(note):
    """Starts a process that leaves its parent, session and group, ignores SIGTERM and holds the master's port."""
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        with open(note, "w") as file:
            json.dump({"pid": os.getpid(), "port": server.getsockname()[1]}, file)
        os.write(told, b"x")
        while True:
            time.sleep(1000)
    os.read(ready, 1)


def meet(rank, size):
    """Every other rank sends bytes to rank 0, at the address of the rank variables. Returns how many came in all."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        received = 0
        with socket.create_server(address) as server:
            for _ in range(size - 1):
                peer, _ = server.accept()
                while data := peer.recv(1 << 16):
                    received += len(data)
        return received
    for attempt in range(600):
        try:
            with socket.create_connection(address) as peer:
                peer.sendall(bytes(BYTES))
            return 0
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("nobody listens at the master's address")


def train(arguments):
    rank = int(os.environ["RANK"])
    received = meet(rank, int(os.environ["WORLD_SIZE"]))
    steps = 60 // arguments.batch
    rows = ["epoch,wall,val_loss\n"]
    for epoch in range(1, arguments.epochs + 1):
        time.sleep(0.05)
        loss = 2 / epoch
        print(f"epoch {epoch} step {epoch * steps} loss {loss} accuracy {0.5 + epoch / 100 + rank / 1000}")
        rows.append(f'{epoch},"{epoch / 10}",{loss}\n')
    print(f"received {received}, {1000 * arguments.batch} examples per second")
    if arguments.csv and rank == 0:
        with open(arguments.csv, "w") as file:
            file.writelines(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("behaviour")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--csv")
    parser.add_argument("--note")
    arguments = parser.parse_args()
    role = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("type", "worker")
    if role == "ps":
        while True:
            time.sleep(1000)
    if arguments.behaviour == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    if arguments.behaviour == "die" and os.environ["RANK"] == "1":
        sys.exit("this program has a fault")
    if arguments.behaviour == "stay":
        leave_daemon(arguments.note)
        time.sleep(1000)
    if arguments.behaviour == "leave":
        leave_daemon(arguments.note)
        print("epoch 1 step 6 loss 1.5 accuracy 0.75")
        return
    train(arguments)


main()
