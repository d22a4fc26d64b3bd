"""What must not break it: crowds, hostile files and requests, full disks, killed writers, numbers that are none."""
